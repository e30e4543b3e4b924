# SPDX-License-Identifier: Apache-2.0
"""Makes the first file system from which a guest boots: busybox, and the modules that the guest
needs to reach its files."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from vm_packages import tool

# Without these the guest has no root; all others are loaded from there.
FIRST_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]


def module_files(modules):
    """Paths of FIRST_MODULES and of their dependencies, in the order of loading."""
    needs = {}
    for line in (modules / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, rest = line.partition(":")
        needs[Path(path).stem.replace("-", "_")] = [*reversed(rest.split()), path]
    order = []
    for name in FIRST_MODULES:
        order += [path for path in needs.get(name, []) if path not in order]
    return order


def initrd(folder, image, scripts, text):
    """Writes the first file system to the file image: the script init of it, the others, and text
    as settings.sh."""
    modules = next((folder / "lib/modules").iterdir())
    files = module_files(modules)
    with tempfile.TemporaryDirectory(dir=image.parent) as temporary:
        root = Path(temporary)
        (root / "bin").mkdir()
        shutil.copy(tool("busybox"), root / "bin/busybox")
        for name, script in scripts.items():
            shutil.copy(script, root / name)
            (root / name).chmod(0o755)
        for path in files:
            shutil.copy(modules / path, root / Path(path).name)
        names = "".join(f"/{Path(path).name}\n" for path in files)
        (root / "modules.list").write_text(names, encoding="ascii")
        (root / "settings.sh").write_text(text, encoding="utf-8")
        listing = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
        with open(image, "wb") as out:
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=root,
                           input=listing.encode(), stdout=out, check=True, timeout=60)
