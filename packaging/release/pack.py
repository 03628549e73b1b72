"""Packages with the same bytes each time.

pack.py zip FILE FOLDER                                 every file of a folder
pack.py wheel FOLDER PROGRAM VERSION README TAGS NAME   a wheel that carries the program
pack.py validate FILE...                                server.json files, by the schema they name
"""

import base64
import hashlib
import json
import os
import sys
import urllib.request
import zipfile

# The earliest time that a zip file can express.
TIME = (1980, 1, 1, 0, 0, 0)


def add(archive, name, data, is_program):
    entry = zipfile.ZipInfo(name, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = (0o100755 if is_program else 0o100644) << 16
    archive.writestr(entry, data)


def zip_folder(file, folder):
    names = []
    for root, _, files in os.walk(folder):
        names += [os.path.join(root, name) for name in files]
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(names):
            with open(path, "rb") as content:
                name = os.path.relpath(path, folder).replace(os.sep, "/")
                add(archive, name, content.read(), os.access(path, os.X_OK))


# `uvx bowline-mcp` runs the command that is called like the package. On Windows a program cannot
# become another one, so this one waits, and leaves Ctrl-C to the other.
START = """import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "NAME")
    if os.name != "nt":
        os.execv(program, [program, *sys.argv[1:]])
    import subprocess

    child = subprocess.Popen([program, *sys.argv[1:]])
    while True:
        try:
            sys.exit(child.wait())
        except KeyboardInterrupt:
            pass
"""


def wheel(place, program, version, readme, tags, name):
    folder = f"bowline_mcp-{version}.dist-info"
    with open(program, "rb") as content:
        program = content.read()
    with open(readme, encoding="utf-8") as content:
        readme = content.read()
    metadata = (
        f"Metadata-Version: 2.4\nName: bowline-mcp\nVersion: {version}\n"
        "Summary: Ties any MCP client to any MCP server\n"
        "License-Expression: MIT OR Apache-2.0\nRequires-Python: >=3.8\n"
        "Project-URL: Repository, https://github.com/bowline-mcp/bowline\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )
    about = "Wheel-Version: 1.0\nGenerator: bowline\nRoot-Is-Purelib: false\n"
    about += "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
    commands = b"[console_scripts]\nbowline-mcp = bowline_mcp:main\n"
    files = [
        (f"bowline_mcp-{version}.data/scripts/{name}", program, True),
        ("bowline_mcp.py", START.replace("NAME", name).encode(), False),
        (f"{folder}/entry_points.txt", commands, False),
        (f"{folder}/METADATA", metadata.encode(), False),
        (f"{folder}/WHEEL", about.encode(), False),
    ]
    record = ""
    for path, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    record += f"{folder}/RECORD,,\n"
    file = os.path.join(place, f"bowline_mcp-{version}-py3-none-{tags}.whl")
    with zipfile.ZipFile(file, "w") as archive:
        for path, data, is_program in files:
            add(archive, path, data, is_program)
        add(archive, f"{folder}/RECORD", record.encode(), False)


def validate(files):
    import jsonschema

    for file in files:
        with open(file, encoding="utf-8") as content:
            document = json.load(content)
        with urllib.request.urlopen(document["$schema"], timeout=30) as answer:
            schema = json.load(answer)
        jsonschema.validators.validator_for(schema)(schema).validate(document)
        print(f"{file} is valid")


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "zip":
        zip_folder(*rest)
    elif command == "wheel":
        wheel(*rest)
    else:
        validate(rest)
