"""Script of Unbound's Python module: answers NXDOMAIN for the hosts on a blocklist.

The environment names the filter (PETAL_BLOCKLIST) and the allow list (PETAL_ALLOW). Unbound asks its modules only for
names that are not in its cache, so an answer that was cached before a host was listed lives until its TTL ends.
"""

import os
from pathlib import Path

from name_filter import Blocklist
from unboundmodule import (
    MODULE_ERROR,
    MODULE_EVENT_MODDONE,
    MODULE_EVENT_NEW,
    MODULE_EVENT_PASS,
    MODULE_FINISHED,
    MODULE_WAIT_MODULE,
    RCODE_NXDOMAIN,
)

blocklist: Blocklist


def init_standard(id, env):
    global blocklist
    blocklist = Blocklist(Path(os.environ["PETAL_BLOCKLIST"]), Path(os.environ["PETAL_ALLOW"]))
    return True


def operate(id, event, qstate, qdata):
    if event in (MODULE_EVENT_NEW, MODULE_EVENT_PASS):
        blocklist.refresh()
        if blocklist.listed_name(qstate.qinfo.qname_str):
            qstate.return_rcode = RCODE_NXDOMAIN
            qstate.ext_state[id] = MODULE_FINISHED
        else:
            qstate.ext_state[id] = MODULE_WAIT_MODULE  # The next module, the iterator, resolves the name.
    elif event == MODULE_EVENT_MODDONE:
        qstate.ext_state[id] = MODULE_FINISHED
    else:
        qstate.ext_state[id] = MODULE_ERROR
    return True


def inform_super(id, qstate, superqstate, qdata):
    return True


def deinit(id):
    return True
