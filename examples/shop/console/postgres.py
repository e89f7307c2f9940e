"""PostgreSQL: a server of our own, and in it one database for the shop's tables and Intact's schema, so that an order and its
task are written in one transaction. Each program has a role of its own, which may do what it needs. It takes docs/postgresql.md
at its word: that page says why."""

import glob
import os
import pwd
import re
import shutil
import subprocess

from processes import Process

ROLES = """
CREATE ROLE intact_owner LOGIN;
CREATE ROLE intact_node LOGIN;
CREATE ROLE shop LOGIN;
CREATE ROLE reader LOGIN; -- for people who look
GRANT pg_read_all_stats TO intact_node;
GRANT pg_read_all_data TO reader;
"""
DATABASE = """
REVOKE ALL ON DATABASE shop FROM PUBLIC;
GRANT CONNECT ON DATABASE shop TO intact_owner, intact_node, reader;
GRANT CREATE ON DATABASE shop TO intact_owner;
"""
RIGHTS = """
GRANT USAGE ON SCHEMA intact TO intact_node, shop;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA intact TO intact_node;
REVOKE UPDATE, DELETE, TRUNCATE ON intact.audit FROM intact_node;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA intact TO intact_node;
GRANT INSERT ON intact.submit TO shop; -- to submit; and to see whether the workflow is there:
GRANT SELECT (name) ON intact.workflow TO shop;
"""


def programs():
    """Debian has each version in a folder of its own; the newest one is taken."""
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    return os.path.dirname(max(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path)])) if found else None


def user():
    """It does not run as root: then it runs as the user that its package made."""
    return "postgres" if os.getuid() == 0 else ""


def run(place, *command, text=None):
    done = subprocess.run(command, input=text, text=True, capture_output=True, cwd=f"{place.work}/db", check=False,
                          **({"user": user(), "group": user(), "extra_groups": []} if user() else {}))
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(command[0])}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def sql(place, role, text, database="shop"):
    return run(place, f"{programs()}/psql", "-h", f"{place.work}/db/socket", "-U", role, "-d", database, "-AtqX",
               "-v", "ON_ERROR_STOP=1", text=text)


def process(place):
    """Its cluster is made if it is not there."""
    db = f"{place.work}/db"
    if len(f"{db}/socket/.s.PGSQL.5432") > 107:
        raise RuntimeError(f"the path of the work folder is too long for a socket in it: {place.work}")
    if not os.path.exists(f"{db}/data/PG_VERSION"):
        shutil.rmtree(db, ignore_errors=True)
        os.makedirs(db, mode=0o700)
        os.makedirs(f"{db}/socket", mode=0o700)
        if user():
            os.chmod(place.work, 0o711)  # its user has to get through
            owner = pwd.getpwnam(user())
            for folder in (db, f"{db}/socket"):
                os.chown(folder, owner.pw_uid, owner.pw_gid)
        run(place, f"{programs()}/initdb", "-D", f"{db}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
            "--no-instructions")
    return Process("database", "database", "PostgreSQL: the shop's tables, and Intact's",
                   [f"{programs()}/postgres", "-D", f"{db}/data", "-k", f"{db}/socket", "-c", "listen_addresses=",
                    "-c", "dynamic_shared_memory_type=mmap"], user=user(), folder=db)


def is_ready(place):
    try:
        return bool(sql(place, "postgres", "SELECT 1", "postgres"))
    except RuntimeError:
        return False


def set_up(place):
    """Roles, the database, Intact's tables made by their owner. Whatever of it is there stays."""
    if not sql(place, "postgres", "SELECT 1 FROM pg_database WHERE datname = 'shop'", "postgres"):
        sql(place, "postgres", "BEGIN;" + ROLES + "COMMIT; CREATE DATABASE shop OWNER shop", "postgres")
    sql(place, "postgres", DATABASE)
    subprocess.run([place.intact, "serve", "--migrate"], env={**os.environ, "INTACT_STORE": place.database_url("intact_owner")},
                   check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=place.work)
    sql(place, "intact_owner", RIGHTS)
