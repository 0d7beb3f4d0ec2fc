/* The hot path: every call of a watched function passes `hooked`, and nothing else of jaxwatch unless JAX worked.
 *
 * JAX's own PjitFunction keeps a call pointer for each instance (the vectorcall protocol). `hook` puts ours there and
 * keeps JAX's, so that type, identity, attributes, pickling and `isinstance` stay JAX's own. `exact` sets a function up
 * anew as unpickling would, with its cache_miss callback seen, which tells for certain, at no cost on a hit, that a call
 * left JAX's C++ fast path. jaxwatch/_wrap.py is the readable specification of both.
 *
 * A hit costs: a frame on this thread's list, two clock reads, one store into the histogram. The frames are taken from a
 * list of free ones and not from the C stack: a greenlet that is switched away takes its stack with it.
 *
 * All is guarded by the interpreter lock; free-threaded builds are not claimed (they turn the lock on). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

#if PY_VERSION_HEX < 0x030C0000
#define SAVED_ERROR PyObject *error_type, *error_value, *error_trace
#define SAVE_ERROR() PyErr_Fetch(&error_type, &error_value, &error_trace)
#define RESTORE_ERROR() PyErr_Restore(error_type, error_value, error_trace)
#else
#define SAVED_ERROR PyObject *error_value
#define SAVE_ERROR() error_value = PyErr_GetRaisedException()
#define RESTORE_ERROR() PyErr_SetRaisedException(error_value)
#endif

/* As in _histogram.py: 16 buckets an octave, from 2**8 ns on; a test holds the two against each other. */
enum { SUB_BITS = 4, LOWEST_OCTAVE = 8, OCTAVES = 34, SIZE = (OCTAVES << SUB_BITS) + 1 };

/* ------------------------------------------------------------------ clock */

static uint64_t system_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Where the processor has an invariant time-stamp counter it costs half of clock_gettime. Its rate is measured at import,
 * and again, over all that has passed since, whenever counts are read. */
static int counter_is_used;
static uint64_t ticks_to_ns = (uint64_t)1 << 32; /* fixed point, 32 bits behind the point */
static uint64_t checked_ticks, checked_ns;
static double rate = 1.0; /* the counter's against the system's clock, at the last look */

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <x86intrin.h>
static int counter_is_invariant(void) {
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}
static inline uint64_t ticks(void) { return __builtin_expect(counter_is_used, 1) ? __rdtsc() : system_ns(); }
#else
static int counter_is_invariant(void) { return 0; }
static inline uint64_t ticks(void) { return system_ns(); }
#endif

static inline uint64_t as_ns(uint64_t t) {
#if defined(__SIZEOF_INT128__)
    return (uint64_t)(((unsigned __int128)t * ticks_to_ns) >> 32);
#else
    return (uint64_t)((double)t * ((double)ticks_to_ns / 4294967296.0));
#endif
}

static uint64_t fixed(double value) { return (uint64_t)(value * 4294967296.0); }

static void clock_start(void) {
    enum { NANOSECONDS = 2000000 }; /* two reads of ~50 ns each in 2 ms: the rate is right to 1e-4 */
    counter_is_used = counter_is_invariant();
    checked_ns = system_ns();
    checked_ticks = ticks();
    if (!counter_is_used) return;
    uint64_t now;
    while ((now = system_ns()) - checked_ns < NANOSECONDS) {}
    uint64_t passed = ticks() - checked_ticks;
    if (passed < NANOSECONDS / 100) counter_is_used = 0; /* it does not run */
    else ticks_to_ns = fixed((double)(now - checked_ns) / (double)passed);
}

/* A machine that slept or moved may have another rate: what comes is then right, and `rate` tells of what was. */
static void clock_check(void) {
    enum { NANOSECONDS = 10000000 };
    if (!counter_is_used) return;
    uint64_t now = system_ns(), counter = ticks();
    if (now - checked_ns < NANOSECONDS) return;
    double passed = (double)(now - checked_ns), counted = (double)(int64_t)(counter - checked_ticks);
    rate = counted * ((double)ticks_to_ns / 4294967296.0) / passed;
    if (rate > 0.01 && rate < 100) ticks_to_ns = fixed(passed / counted);
    checked_ns = now;
    checked_ticks = counter;
}

static inline unsigned bucket(uint64_t ns) {
    if (ns < ((uint64_t)1 << LOWEST_OCTAVE)) return 0;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns);
    unsigned index = ((octave - LOWEST_OCTAVE) << SUB_BITS) + ((unsigned)(ns >> (octave - SUB_BITS)) & 15u) + 1;
    return index < SIZE ? index : SIZE - 1;
}

/* ------------------------------------------------------------------ cells: what the hot path writes */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call; /* JAX's own */
    PyObject *subject;   /* _registry.Subject */
    int exact;           /* the function's cache misses are seen */
    PyObject *instead;   /* the user's function, where it is called in place of JAX's: owned, so it dies with the hook */
    uint64_t calls, left; /* begun; those that left the fast path */
    uint64_t dispatch[SIZE];
} Cell;

typedef struct Frame {
    struct Frame *up;
    Cell *cell;
    PyObject *const *args;
    size_t nargsf;
    PyObject *names;
    uint64_t call;
    PyObject *object; /* the _frames.Frame, once Python has asked for it; owned */
    int left;         /* the fast path */
} Frame;

static _Thread_local Frame *top; /* innermost active call of this thread */
static Frame *free_frames;       /* of the process: those of a thread would be lost when it ends */

/* Python's side, set once by `setup`; a process has one. */
static PyTypeObject *pjit_type;
static PyObject *frame_class, *on_finish, *on_fail, *on_left;

static int Cell_traverse(Cell *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->subject);
    Py_VISIT(self->instead);
    return 0;
}
static int Cell_clear(Cell *self) {
    Py_CLEAR(self->subject);
    Py_CLEAR(self->instead);
    return 0;
}
static void Cell_dealloc(Cell *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Cell_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}
static PyObject *Cell_counts(Cell *self, PyObject *Py_UNUSED(none)) {
    clock_check();
    PyObject *counts = PyDict_New();
    for (long i = 0; counts && i < SIZE; i++) {
        if (!self->dispatch[i]) continue;
        PyObject *index = PyLong_FromLong(i), *count = PyLong_FromUnsignedLongLong(self->dispatch[i]);
        if (!index || !count || PyDict_SetItem(counts, index, count)) Py_CLEAR(counts);
        Py_XDECREF(index);
        Py_XDECREF(count);
    }
    return counts;
}
static PyObject *Cell_add(Cell *self, PyObject *ns) {
    unsigned long long value = PyLong_AsUnsignedLongLong(ns);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    self->dispatch[bucket(value)]++;
    Py_RETURN_NONE;
}
static PyObject *Cell_reset(Cell *self, PyObject *Py_UNUSED(none)) {
    self->calls = self->left = 0;
    memset(self->dispatch, 0, sizeof self->dispatch);
    Py_RETURN_NONE;
}
static PyMethodDef Cell_methods[] = {
    {"counts", (PyCFunction)Cell_counts, METH_NOARGS, "counts($self, /)\n--\n\nReturn bucket -> count, of those that hold anything."},
    {"add", (PyCFunction)Cell_add, METH_O, "add($self, nanoseconds, /)\n--\n\nCount a call of that duration."},
    {"reset", (PyCFunction)Cell_reset, METH_NOARGS, "reset($self, /)\n--\n\nStart at 0 again."},
    {NULL},
};
static PyMemberDef Cell_members[] = {
    {"calls", T_ULONGLONG, offsetof(Cell, calls), READONLY, "calls begun"},
    {"left", T_ULONGLONG, offsetof(Cell, left), READONLY, "calls that left JAX's fast path, where that is seen"},
    {NULL},
};
static PyType_Slot Cell_slots[] = {
    {Py_tp_doc, "The counters of one watched function, written by its calls."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_traverse, Cell_traverse},
    {Py_tp_clear, Cell_clear},
    {Py_tp_dealloc, Cell_dealloc},
    {Py_tp_methods, Cell_methods},
    {Py_tp_members, Cell_members},
    {0, NULL},
};
static PyType_Spec Cell_spec = {"jaxwatch._native.core.Cell", sizeof(Cell), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, Cell_slots};

/* ------------------------------------------------------------------ table: hooked function → cell, open addressing */

typedef struct {
    PyObject *key; /* borrowed: the entry goes when the function dies */
    Cell *cell;    /* owned */
    PyObject *weak; /* owned: its callback drops the entry, before the memory is used again */
} Slot;
static Slot *table;
static size_t mask, used;

static inline size_t place(PyObject *key) { return ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask; }

static inline Slot *find(PyObject *key) {
    size_t i = place(key);
    while (table[i].key && table[i].key != key) i = (i + 1) & mask;
    return &table[i];
}

static int grow(void) { /* at most half full */
    if (table && (used + 1) * 2 <= mask + 1) return 0;
    size_t old_size = table ? mask + 1 : 0, size = table ? old_size * 2 : 256;
    Slot *old = table, *new = PyMem_Calloc(size, sizeof(Slot));
    if (!new) {
        PyErr_NoMemory();
        return -1;
    }
    table = new;
    mask = size - 1;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].key) *find(old[i].key) = old[i];
    PyMem_Free(old);
    return 0;
}

static void drop(PyObject *key) { /* with later entries shifted back into the gap */
    if (!table) return;
    Slot *slot = find(key);
    if (!slot->key) return;
    Slot gone = *slot;
    size_t gap = (size_t)(slot - table), i = gap;
    table[gap] = (Slot){NULL, NULL, NULL};
    for (;;) {
        i = (i + 1) & mask;
        if (!table[i].key) break;
        size_t home = place(table[i].key);
        if (gap <= i ? (gap < home && home <= i) : (gap < home || home <= i)) continue;
        table[gap] = table[i];
        table[i] = (Slot){NULL, NULL, NULL};
        gap = i;
    }
    used--;
    Py_CLEAR(gone.cell->instead);
    Py_CLEAR(gone.cell->subject); /* which holds the cell by its counters: no cycle is left for the collector */
    Py_DECREF(gone.cell);
    Py_XDECREF(gone.weak);
}

/* ------------------------------------------------------------------ frames */

static inline Frame *push(Cell *cell, PyObject *const *args, size_t nargsf, PyObject *names) {
    Frame *frame = free_frames;
    if (__builtin_expect(frame != NULL, 1)) free_frames = frame->up;
    else if (!(frame = PyMem_Malloc(sizeof *frame))) return NULL;
    frame->up = top;
    frame->cell = cell;
    frame->args = args;
    frame->nargsf = nargsf;
    frame->names = names;
    frame->call = ++cell->calls;
    frame->object = NULL;
    frame->left = 0;
    return top = frame;
}

static inline void pop(Frame *frame) { /* by identity: greenlets may end in another order than they began */
    if (__builtin_expect(top == frame, 1)) top = frame->up;
    else
        for (Frame *above = top; above; above = above->up)
            if (above->up == frame) {
                above->up = frame->up;
                break;
            }
}

static inline void recycle(Frame *frame) {
    Py_XDECREF(frame->object);
    frame->up = free_frames;
    free_frames = frame;
}

static PyObject *frame_object(Frame *frame) { /* borrowed; NULL with an error set */
    if (frame->object) return frame->object;
    Py_ssize_t count = PyVectorcall_NARGS(frame->nargsf), named = frame->names ? PyTuple_GET_SIZE(frame->names) : 0;
    PyObject *args = PyTuple_New(count), *kwargs = PyDict_New();
    for (Py_ssize_t i = 0; args && i < count; i++) PyTuple_SET_ITEM(args, i, Py_NewRef(frame->args[i]));
    for (Py_ssize_t i = 0; kwargs && i < named; i++)
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(frame->names, i), frame->args[count + i])) Py_CLEAR(kwargs);
    if (args && kwargs)
        frame->object = PyObject_CallFunction(frame_class, "OKOO", frame->cell->subject, (unsigned long long)frame->call, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return frame->object;
}

/* ------------------------------------------------------------------ the call */

static int seen(PyObject *object) { /* Frame.seen: a phase of this very function began */
    PyObject *flag = PyObject_GetAttrString(object, "seen");
    if (!flag) PyErr_Clear();
    Py_XDECREF(flag);
    return flag == Py_True;
}

/* The call failed: the user's error goes through; where a guard of ours refused, without the frames of our listener. */
static void failed(Frame *frame) {
    SAVED_ERROR;
    SAVE_ERROR();
#if PY_VERSION_HEX < 0x030C0000
    PyErr_NormalizeException(&error_type, &error_value, &error_trace);
    if (error_trace) PyException_SetTraceback(error_value, error_trace);
#endif
    if (seen(frame->object)) {
        PyObject *refused = PyObject_CallFunctionObjArgs(on_fail, frame->object, error_value, NULL);
        if (!refused) PyErr_Clear();
        else if (refused == Py_True) {
#if PY_VERSION_HEX < 0x030C0000
            Py_CLEAR(error_trace);
#endif
            PyException_SetTraceback(error_value, Py_None);
        }
        Py_XDECREF(refused);
    }
    RESTORE_ERROR();
}

/* JAX worked, or the call left the fast path. NULL only where a warning that the user asked for is an error. */
static PyObject *worked(Frame *frame, PyObject *result, uint64_t ns) {
    PyObject *object = frame_object(frame), *done = NULL;
    if (!object) {
        PyErr_Clear();
        return result;
    }
    if (seen(object)) {
        done = PyObject_CallOneArg(on_finish, object);
        if (done == Py_True) frame->cell->dispatch[bucket(ns)]++; /* nothing was built: it ran from the cache */
    } else if (frame->left) done = PyObject_CallFunction(on_left, "OK", object, (unsigned long long)ns);
    else return result;
    if (!done) Py_CLEAR(result);
    Py_XDECREF(done);
    return result;
}

static PyObject *hooked(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Cell *cell = find(self)->cell;
    Frame *frame = push(cell, args, nargsf, names);
    if (!frame) return cell->call(self, args, nargsf, names);
    Py_INCREF(self); /* the call may drop the last references to both */
    Py_INCREF(cell);
    uint64_t begun = ticks();
    PyObject *result = cell->call(self, args, nargsf, names);
    int64_t passed = (int64_t)(ticks() - begun); /* less than 0 where a virtual machine has moved meanwhile */
    uint64_t ns = passed > 0 ? as_ns((uint64_t)passed) : 0;
    pop(frame);
    if (__builtin_expect(!result || frame->left || frame->object, 0)) {
        if (result) result = worked(frame, result, ns);
        else if (frame->object) failed(frame);
    } else if (cell->exact || !frame->up)
        cell->dispatch[bucket(ns)]++;
    recycle(frame);
    Py_DECREF(cell);
    Py_DECREF(self);
    return result;
}

/* ------------------------------------------------------------------ scoped: in place of `hooked` where JAXWATCH_JIT_SCOPE
 * is set, or outermost calls are measured; no other process pays for it */

typedef struct {
    uint64_t begun, returned, ready; /* CLOCK_MONOTONIC, nanoseconds */
    uint64_t function;               /* id of the subject */
} Record;
enum { MOST_RECORDS = 1 << 21 };
static struct {
    Record *records;
    size_t count, room;       /* calls so far; records that there is room for */
    PyObject *after, *nested; /* after(result, call), or NULL; nested(outer subject, subject), or NULL */
    int on;
} measuring;
static _Thread_local Cell *outer; /* borrowed: of the innermost scoped call of this thread */

static void keep(Record record) { /* the first ones, where they are too many */
    if (measuring.count++ >= MOST_RECORDS) return;
    if (measuring.count > measuring.room) {
        size_t room = measuring.room ? 2 * measuring.room : 1024;
        Record *more = PyMem_Realloc(measuring.records, room * sizeof(Record));
        if (!more) return;
        measuring.records = more;
        measuring.room = room;
    }
    measuring.records[measuring.count - 1] = record;
}

static PyObject *scoped(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Cell *cell = find(self)->cell, *up = outer;
    Py_INCREF(self); /* as in `hooked` */
    Py_INCREF(cell);
    Record record = {.function = (uintptr_t)cell->subject};
    if (up && measuring.nested && cell->subject && up->subject) {
        PyObject *done = PyObject_CallFunctionObjArgs(measuring.nested, up->subject, cell->subject, NULL);
        if (!done) PyErr_Clear();
        Py_XDECREF(done);
    }
    outer = cell;
    if (!up && measuring.on) record.begun = system_ns();
    PyObject *result;
    if (cell->instead) {
        cell->calls++;
        result = PyObject_Vectorcall(cell->instead, args, nargsf, names);
    } else result = hooked(self, args, nargsf, names);
    if (!up && measuring.on && record.begun) {
        record.returned = record.ready = system_ns();
        size_t place = measuring.count;
        keep(record);
        if (measuring.after && result) {
            PyObject *done = PyObject_CallFunction(measuring.after, "On", result, (Py_ssize_t)place + 1);
            if (place < measuring.room && place < MOST_RECORDS) measuring.records[place].ready = system_ns();
            if (!done) Py_CLEAR(result); /* the program is to end here */
            Py_XDECREF(done);
        }
    }
    outer = up;
    Py_DECREF(cell);
    Py_DECREF(self);
    return result;
}

static inline int ours(vectorcallfunc call) { return call == hooked || call == scoped; }

static PyObject *core_measure(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *after, *nested;
    if (!PyArg_ParseTuple(args, "OO", &after, &nested)) return NULL;
    Py_XSETREF(measuring.after, after == Py_None ? NULL : Py_NewRef(after));
    Py_XSETREF(measuring.nested, nested == Py_None ? NULL : Py_NewRef(nested));
    measuring.on = 1;
    measuring.count = 0;
    Py_RETURN_NONE;
}

static PyObject *core_measured(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    size_t kept = measuring.count < measuring.room ? measuring.count : measuring.room;
    if (kept > MOST_RECORDS) kept = MOST_RECORDS;
    return Py_BuildValue("ny#", (Py_ssize_t)measuring.count, kept ? (char *)measuring.records : "", (Py_ssize_t)(kept * sizeof(Record)));
}

/* ------------------------------------------------------------------ cache_miss, seen */

typedef struct {
    PyObject_HEAD
    PyObject *real; /* JAX's own callback */
    Cell *cell;     /* whose function it belongs to: a copy of the function has the callback, not the hook */
    vectorcallfunc vectorcall;
} Miss;

static PyObject *Miss_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Cell *cell = ((Miss *)self)->cell;
    if (top && top->cell == cell) {
        top->left = 1;
        cell->left++;
    }
    return PyObject_Vectorcall(((Miss *)self)->real, args, nargsf, names);
}
static int Miss_traverse(Miss *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->real);
    Py_VISIT(self->cell);
    return 0;
}
static int Miss_clear(Miss *self) {
    Py_CLEAR(self->real);
    Py_CLEAR(self->cell);
    return 0;
}
static void Miss_dealloc(Miss *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Miss_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}
/* Pickled as JAX's own, by nothing of ours, so that it can be read where jaxwatch is not: itemgetter(0)((real,)). */
static PyObject *Miss_reduce(Miss *self, PyObject *Py_UNUSED(none)) {
    PyObject *module = PyImport_ImportModule("operator");
    PyObject *first = module ? PyObject_CallMethod(module, "itemgetter", "i", 0) : NULL;
    Py_XDECREF(module);
    return first ? Py_BuildValue("N((O))", first, self->real) : NULL;
}
static PyMethodDef Miss_methods[] = {
    {"__reduce__", (PyCFunction)Miss_reduce, METH_NOARGS, "Pickle as the callback that it stands for."},
    {NULL},
};
static PyMemberDef Miss_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Miss, vectorcall), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Miss, real), READONLY, "JAX's own callback"},
    {NULL},
};
static PyType_Slot Miss_slots[] = {
    {Py_tp_doc, "JAX's cache_miss callback, and a mark on the call that needs it."},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, Miss_traverse},
    {Py_tp_clear, Miss_clear},
    {Py_tp_dealloc, Miss_dealloc},
    {Py_tp_methods, Miss_methods},
    {Py_tp_members, Miss_members},
    {0, NULL},
};
static PyType_Spec Miss_spec = {
    "jaxwatch._native.core.Miss", sizeof(Miss), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, Miss_slots};
static PyTypeObject *cell_type, *miss_type;

/* A function set up anew from the state of another one, as unpickling does. __setstate__ on a live one corrupts memory. */
static PyObject *set_up_anew(PyObject *function, PyObject *state) {
    PyObject *made = PyObject_CallMethod((PyObject *)Py_TYPE(function), "__new__", "O", Py_TYPE(function));
    PyObject *done = made ? PyObject_CallMethod(made, "__setstate__", "O", state) : NULL;
    if (made && !done) { /* half made: to free it, or to let the collector look at it, crashes; it is lost */
        PyObject_GC_UnTrack(made);
        return NULL;
    }
    Py_XDECREF(done);
    return made;
}

static PyObject *with_attributes_of(PyObject *function, PyObject *made) { /* steals `made` */
    PyObject *from = made ? PyObject_GetAttrString(function, "__dict__") : NULL;
    PyObject *to = from ? PyObject_GetAttrString(made, "__dict__") : NULL;
    if (!to || PyDict_Update(to, from)) Py_CLEAR(made);
    Py_XDECREF(from);
    Py_XDECREF(to);
    return made;
}

static PyObject *core_exact(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *function, *cell, *made = NULL;
    if (!PyArg_ParseTuple(args, "OO!", &function, cell_type, &cell)) return NULL;
    PyObject *state = PyObject_CallMethod(function, "__getstate__", NULL);
    PyObject *real = state ? PyMapping_GetItemString(state, "cache_miss") : NULL;
    Miss *miss = real ? PyObject_GC_New(Miss, miss_type) : NULL;
    if (miss) {
        miss->real = Py_NewRef(real);
        miss->cell = (Cell *)Py_NewRef(cell);
        miss->vectorcall = Miss_vectorcall;
        PyObject_GC_Track(miss);
        if (!PyMapping_SetItemString(state, "cache_miss", (PyObject *)miss))
            made = with_attributes_of(function, set_up_anew(function, state));
        if (made) ((Cell *)cell)->exact = 1;
    }
    Py_XDECREF(state);
    Py_XDECREF(real);
    Py_XDECREF(miss);
    return made;
}

/* As JAX's own copy: without attributes. */
static PyObject *core_plain(PyObject *Py_UNUSED(module), PyObject *function) {
    PyObject *state = PyObject_CallMethod(function, "__getstate__", NULL), *made = NULL;
    PyObject *miss = state ? PyMapping_GetItemString(state, "cache_miss") : NULL;
    if (miss && Py_TYPE(miss) == miss_type && PyMapping_SetItemString(state, "cache_miss", ((Miss *)miss)->real)) Py_CLEAR(miss);
    if (miss) made = set_up_anew(function, state);
    Py_XDECREF(miss);
    Py_XDECREF(state);
    return made;
}

/* ------------------------------------------------------------------ hook, unhook */

static vectorcallfunc *call_pointer(PyObject *function) {
    Py_ssize_t offset = Py_TYPE(function)->tp_vectorcall_offset;
    if (Py_TYPE(function) != pjit_type || offset <= 0) {
        PyErr_Format(PyExc_TypeError, "not a jitted function: %R", function);
        return NULL;
    }
    return (vectorcallfunc *)((char *)function + offset);
}

/* In a cycle of garbage the weak reference goes first, and finalizers may still call the function: then JAX's own. */
static PyObject *on_death(PyObject *address, PyObject *Py_UNUSED(weak)) {
    PyObject *function = PyLong_AsVoidPtr(address);
    Cell *cell = find(function)->cell;
    if (cell) *call_pointer(function) = cell->call;
    drop(function);
    Py_RETURN_NONE;
}
static PyMethodDef on_death_def = {"on_death", on_death, METH_O, "Drop a hooked function that died."};

static PyObject *core_hook(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *function, *cell_object, *subject;
    int in_scope = 0;
    PyObject *instead = Py_None;
    if (!PyArg_ParseTuple(args, "OO!O|pO", &function, cell_type, &cell_object, &subject, &in_scope, &instead)) return NULL;
    Cell *cell = (Cell *)cell_object;
    vectorcallfunc *pointer = call_pointer(function);
    if (!pointer) return NULL;
    if (ours(*pointer)) return PyErr_Format(PyExc_ValueError, "hooked already: %R", function);
    PyObject *address = PyLong_FromVoidPtr(function);
    PyObject *callback = address ? PyCFunction_New(&on_death_def, address) : NULL;
    PyObject *weak = callback ? PyWeakref_NewRef(function, callback) : NULL;
    Py_XDECREF(address);
    Py_XDECREF(callback);
    if (!weak || grow()) {
        Py_XDECREF(weak);
        return NULL;
    }
    Py_XSETREF(cell->subject, Py_NewRef(subject));
    cell->call = *pointer;
    Py_XSETREF(cell->instead, instead == Py_None ? NULL : Py_NewRef(instead));
    *find(function) = (Slot){function, (Cell *)Py_NewRef(cell_object), weak};
    used++;
    *pointer = in_scope ? scoped : hooked;
    Py_RETURN_NONE;
}

static PyObject *core_unhook(PyObject *Py_UNUSED(module), PyObject *function) {
    vectorcallfunc *pointer = call_pointer(function);
    if (!pointer) return NULL;
    if (!ours(*pointer)) Py_RETURN_FALSE;
    *pointer = find(function)->cell->call;
    drop(function);
    Py_RETURN_TRUE;
}

static PyObject *core_is_hooked(PyObject *Py_UNUSED(module), PyObject *function) {
    vectorcallfunc *pointer = Py_TYPE(function) == pjit_type ? call_pointer(function) : NULL;
    return PyBool_FromLong(pointer && ours(*pointer));
}

static PyObject *core_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) { return PyLong_FromSize_t(used); }

static PyObject *core_current(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    if (!top || !top->cell->subject) Py_RETURN_NONE; /* the latter: unhooked within its call */
    return Py_XNewRef(frame_object(top));
}

static PyObject *core_clock(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    clock_check();
    return Py_BuildValue("sd", counter_is_used ? "time-stamp counter" : "clock_gettime", rate);
}

static PyObject *nothing(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(nargsf), PyObject *Py_UNUSED(names)) {
    Py_RETURN_NONE;
}

/* The interpreter is not let go in between, so nobody else can call the function meanwhile. */
static PyObject *core_price(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *function;
    unsigned int number;
    if (!PyArg_ParseTuple(args, "OI", &function, &number)) return NULL;
    vectorcallfunc *pointer = call_pointer(function);
    if (!pointer) return NULL;
    if (*pointer != hooked || !number) return PyErr_Format(PyExc_ValueError, "not hooked, or no calls: %R", function);
    Cell *cell = find(function)->cell;
    vectorcallfunc real = cell->call;
    cell->call = nothing;
    uint64_t begun = system_ns();
    for (unsigned int i = 0; i < number; i++) Py_XDECREF((*pointer)(function, NULL, 0, NULL));
    uint64_t passed = system_ns() - begun;
    cell->call = real;
    return PyFloat_FromDouble((double)passed / number);
}

static PyObject *core_setup(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *type, *frame, *finish, *fail, *left;
    if (!PyArg_ParseTuple(args, "O!OOOO", &PyType_Type, &type, &frame, &finish, &fail, &left)) return NULL;
    Py_XSETREF(pjit_type, (PyTypeObject *)Py_NewRef(type));
    Py_XSETREF(frame_class, Py_NewRef(frame));
    Py_XSETREF(on_finish, Py_NewRef(finish));
    Py_XSETREF(on_fail, Py_NewRef(fail));
    Py_XSETREF(on_left, Py_NewRef(left));
    if (!table && grow()) return NULL;
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ jit: without a Python frame, so that the stack levels
 * of JAX's warnings, and tracebacks, are as with jax.jit */

typedef struct {
    PyObject_HEAD
    PyObject *original, *adopt, *dict, *weakrefs;
    int decorates; /* `original` takes options without a function */
    vectorcallfunc vectorcall;
} Jit;

/* Call `original` with all but watch=, and hand what it returns to adopt(returned, function, watch, options). Without a
 * function adopt gets None for it, and for what was returned too where `original` is no decorator. */
static PyObject *Jit_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names) {
    Jit *self = (Jit *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *watch = Py_None, *options = PyDict_New(), *given = PyTuple_New(count), *jitted = NULL, *answer = NULL;
    if (!options || !given) goto end;
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (!PyUnicode_CompareWithASCIIString(name, "watch")) watch = args[count + i];
        else if (PyDict_SetItem(options, name, args[count + i])) goto end;
    }
    jitted = count || self->decorates ? PyObject_Call(self->original, given, options) : Py_NewRef(Py_None);
    if (jitted) answer = PyObject_CallFunctionObjArgs(self->adopt, jitted, count ? args[0] : Py_None, watch, options, NULL);
end:
    Py_XDECREF(options);
    Py_XDECREF(given);
    Py_XDECREF(jitted);
    return answer;
}
static PyObject *Jit_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = {"original", "adopt", "decorates", NULL};
    PyObject *original, *adopt;
    int decorates;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOp", words, &original, &adopt, &decorates)) return NULL;
    Jit *self = (Jit *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->original = Py_NewRef(original);
    self->adopt = Py_NewRef(adopt);
    self->decorates = decorates;
    self->vectorcall = Jit_vectorcall;
    return (PyObject *)self;
}
static int Jit_traverse(Jit *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->original);
    Py_VISIT(self->adopt);
    Py_VISIT(self->dict);
    return 0;
}
static int Jit_clear(Jit *self) {
    Py_CLEAR(self->original);
    Py_CLEAR(self->adopt);
    Py_CLEAR(self->dict);
    return 0;
}
static void Jit_dealloc(Jit *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    Jit_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}
/* Pickled by name, as a function of Python is; the decorator `jit(**options)`, which has none, by its parts. */
static PyObject *Jit_reduce(Jit *self, PyObject *Py_UNUSED(none)) {
    PyObject *name = self->dict ? PyDict_GetItemString(self->dict, "__qualname__") : NULL;
    return name ? Py_NewRef(name) : Py_BuildValue("O(OOi)", Py_TYPE(self), self->original, self->adopt, self->decorates);
}
static PyObject *Jit_same(PyObject *self, PyObject *Py_UNUSED(memo)) { return Py_NewRef(self); }
static PyMethodDef Jit_methods[] = {
    {"__reduce__", (PyCFunction)Jit_reduce, METH_NOARGS, NULL},
    {"__copy__", Jit_same, METH_NOARGS, NULL},
    {"__deepcopy__", Jit_same, METH_O, NULL},
    {NULL},
};
static PyMemberDef Jit_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Jit, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Jit, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Jit, weakrefs), READONLY, NULL},
    {NULL},
};
static PyGetSetDef Jit_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};
static PyType_Slot Jit_slots[] = {
    {Py_tp_new, Jit_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, Jit_traverse},
    {Py_tp_clear, Jit_clear},
    {Py_tp_dealloc, Jit_dealloc},
    {Py_tp_methods, Jit_methods},
    {Py_tp_members, Jit_members},
    {Py_tp_getset, Jit_getset},
    {0, NULL},
};
static PyType_Spec Jit_spec = {"jaxwatch._native.core.Jit", sizeof(Jit), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, Jit_slots};

/* ------------------------------------------------------------------ module */

static PyMethodDef methods[] = {
    {"setup", core_setup, METH_VARARGS, "setup(pjit_type, frame_class, on_finish, on_fail, on_left)"},
    {"exact", core_exact, METH_VARARGS, "exact(function, cell) -> the function set up anew, its cache misses seen"},
    {"plain", core_plain, METH_O, "plain(function) -> the function set up anew as JAX made it"},
    {"hook", core_hook, METH_VARARGS,
     "hook(function, cell, subject, scoped=False, instead=None): have each call counted and timed in the cell"},
    {"measure", core_measure, METH_VARARGS, "measure(after, nested): keep a record of each outermost scoped call"},
    {"measured", core_measured, METH_NOARGS, "measured() -> how many outermost calls, and the records as bytes"},
    {"unhook", core_unhook, METH_O, "unhook(function) -> whether it was hooked"},
    {"is_hooked", core_is_hooked, METH_O, "is_hooked(object)"},
    {"hooked_count", core_count, METH_NOARGS, "hooked_count() -> how many functions are hooked and alive"},
    {"current", core_current, METH_NOARGS, "current() -> the innermost active call of this thread, or None"},
    {"price", core_price, METH_VARARGS, "price(function, number) -> nanoseconds that a call of a hooked function pays, without JAX's part"},
    {"clock", core_clock, METH_NOARGS, "clock() -> which clock, and its rate against the system's since the last look"},
    {NULL},
};

static int module_exec(PyObject *module) {
    static int loaded; /* the table and the frames are the process's */
    if (loaded) {
        PyErr_SetString(PyExc_ImportError, "jaxwatch's native core can be loaded once in a process");
        return -1;
    }
    cell_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &Cell_spec, NULL);
    miss_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &Miss_spec, NULL);
    PyTypeObject *jit_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &Jit_spec, NULL);
    if (!cell_type || !miss_type || !jit_type) return -1;
    if (PyModule_AddType(module, cell_type) || PyModule_AddType(module, jit_type)) return -1;
    if (PyModule_AddIntConstant(module, "SIZE", SIZE)) return -1;
    clock_start();
    loaded = 1;
    return 0;
}
static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}, /* nor does jaxlib load there */
#endif
    {0, NULL},
};
static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "core", .m_doc = "The native hot path of jaxwatch.", .m_methods = methods, .m_slots = module_slots};
PyMODINIT_FUNC PyInit_core(void) { return PyModuleDef_Init(&module_def); }
