"""The disk of a machine whose power is cut: power.c writes down what programs sync, and `cut_power` leaves that."""

import os
import shutil


class Disk:
    """`folder` is what programs see; `place` keeps what is on the disk, and lies beside it."""

    def __init__(self, library, folder, place):
        self.library, self.folder, self.place = library, folder, place
        self.settle()

    def settle(self):
        """All that is there by now is on the disk."""
        shutil.rmtree(self.place, ignore_errors=True)
        os.makedirs(f"{self.place}/i")
        os.makedirs(f"{self.place}/d")
        self._settle(self.folder)

    def _settle(self, folder):
        with os.scandir(folder) as entries, open(self._path("d", os.stat(folder).st_ino), "w", encoding="utf-8") as f:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                f.write(f"{entry.inode()} {'d' if is_folder else 'f'} {entry.name}\n")
                if is_folder:
                    self._settle(entry.path)
                else:
                    shutil.copyfile(entry.path, self._path("i", entry.inode()))

    def env(self, slow=""):
        """For a program that is to be cut off. Sanitizers want to be loaded first, and need not be. What is below
        `slow` takes its time: whoever does not wait for it is found out."""
        options = os.environ.get("ASAN_OPTIONS", "")
        return os.environ | {"LD_PRELOAD": self.library, "POWER_FOLDER": self.folder, "POWER_DISK": self.place, "POWER_SLOW": slow,
                             "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0:detect_leaks=0"}

    def cut_after(self, syncs):
        """From now on so many are done, and the next one ends its program."""
        with open(f"{self.place}/cut.new", "w", encoding="utf-8") as f:
            f.write(f"{syncs:<8}")
        os.rename(f"{self.place}/cut.new", f"{self.place}/cut")

    def cut_power(self):
        """No program runs any more: makes the folder what the disk has."""
        self._restore(self.folder, os.stat(self.folder).st_ino)
        self.settle()

    def _path(self, kind, inode):
        return f"{self.place}/{kind}/{inode}"

    def _names(self, inode):
        try:
            with open(self._path("d", inode), encoding="utf-8") as f:
                lines = [line.rstrip("\n").split(" ", 2) for line in f]
        except FileNotFoundError:  # a folder that was never synced is empty
            lines = []
        return {name: (int(number), kind) for number, kind, name in lines}

    def _restore(self, folder, inode):
        names = self._names(inode)
        for entry in list(os.scandir(folder)):
            if names.get(entry.name, (0, ""))[0] != entry.inode():
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.remove(entry.path)
        for name, (number, kind) in names.items():
            path = f"{folder}/{name}"
            if kind == "d":
                os.makedirs(path, exist_ok=True)
                self._restore(path, number)
            else:
                self._restore_file(path, number)

    def _restore_file(self, path, inode):
        """A file that is there stays the same file: the server would not take another one for its store."""
        try:
            with open(self._path("i", inode), "rb") as f:
                data = f.read()
        except FileNotFoundError:  # its name was synced, its content was not
            data = b""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "wb") as f:
            f.write(data)
