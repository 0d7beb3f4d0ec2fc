"""Which file a descriptor is of: a program that closes all descriptors gives their numbers to files of its own."""

import os
import socket
import weakref

File = tuple[int, int]

_files: "weakref.WeakKeyDictionary[socket.socket, File | None]" = weakref.WeakKeyDictionary()


def file_of(descriptor: int) -> File | None:
    """Return device and inode of an open descriptor; None of one that is closed, or where there are none."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def remember(sock: socket.socket) -> socket.socket:
    """Remember which socket has the descriptor now; return it."""
    _files[sock] = file_of(sock.fileno())
    return sock


def is_own(sock: socket.socket) -> bool:
    """Whether the descriptor is still that of the socket, as it was when it was remembered."""
    return sock.fileno() >= 0 and file_of(sock.fileno()) == _files.get(sock)


def close(sock: socket.socket) -> None:
    """Close the socket; where its descriptor is of another file by now, that one stays open."""
    if is_own(sock):
        sock.close()
    else:
        sock.detach()
