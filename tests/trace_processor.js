// Perfetto's own trace processor, as WebAssembly, on a file: node trace_processor.js FOLDER TRACE SQL...
// FOLDER is that of Perfetto's UI. Each SQL asks for one text; all answers are printed as one list of JSON.
const fs = require('fs'), path = require('path');
const [folder, trace, ...queries] = process.argv.slice(2), node = process;

// the worker that its UI runs it in
globalThis.self = globalThis;
self.location = {href: 'https://localhost/engine_bundle.js'};
globalThis.WorkerGlobalScope = function () {};
globalThis.XMLHttpRequest = class {
  open(_method, url) { this.url = url; }
  send() {
    const file = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
  }
};
console.warn = () => {};
const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
const printed = console.log;
console.log = () => {};
new Function('process', 'require', bundle)(undefined, undefined);

// protocol buffers, as far as they are needed
function varint(n) {
  const out = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 + 128);
  return Buffer.from([...out, n]);
}
const bytes = (field, data) => Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
const number = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
function* fields(buffer) {
  let at = 0;
  const read = () => {
    let value = 0, scale = 1, byte;
    do { byte = buffer[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte > 127);
    return value;
  };
  while (at < buffer.length) {
    const tag = read(), kind = tag & 7;
    const size = kind === 0 ? 0 : kind === 1 ? 8 : kind === 5 ? 4 : read();
    yield [Math.floor(tag / 8), kind === 0 ? read() : buffer.subarray(at, at + size)];
    at += size;
  }
}
const only = (buffer, wanted) => [...fields(buffer)].filter(([field]) => field === wanted).map(([, value]) => value);

// its remote procedure calls: TraceProcessorRpc of perfetto/trace_processor/trace_processor.proto
const {port1, port2} = new MessageChannel(), waiting = [];
let sequence = 1;
port1.on('message', (data) => { for (const reply of only(Buffer.from(data), 1)) waiting.shift()(reply); });
function call(method, ...parts) {
  port1.postMessage(new Uint8Array(bytes(1, Buffer.concat([number(1, sequence++), number(2, method), ...parts]))));
  return new Promise((done) => waiting.push(done));
}
async function main() {
  const answers = [];
  await call(1, bytes(101, fs.readFileSync(trace)));
  await call(2);
  for (const query of queries) {
    const result = only(await call(3, bytes(103, bytes(1, Buffer.from(query)))), 203);
    const error = result.flatMap((one) => only(one, 2)).map(String).join('');
    const cells = result.flatMap((one) => only(one, 3)).flatMap((batch) => only(batch, 5));
    answers.push(error ? {error} : cells.map(String).join('').replace(/\0$/, ''));
  }
  printed(JSON.stringify(answers));
  node.exit(0);
}
self.onmessage({data: port2});
main().catch((error) => { console.error(error); node.exit(1); });
