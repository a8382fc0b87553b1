"""Replays tests/contract/recorded.jsonl: recorded requests still get their recorded answers."""

import collections
import collections.abc
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "contract"))

# pylint: disable=wrong-import-position
import api  # noqa: E402
import recording  # noqa: E402
from api import op, ts  # noqa: E402
from server_process import ServerProcess  # noqa: E402


class Contract(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.recordings = recording.Recordings.load()
        cls.server = cls.enterClassContext(ServerProcess(*recording.SERVER_FLAGS,
                                                         device="reference"))
        cls.channel = cls.enterClassContext(api.connect(cls.server.address))
        cls.player = recording.Player(cls.channel, cls.recordings.schema)

    def replay(self, rpc):
        cases = [case for case in self.recordings.cases.values() if case.rpc == rpc]
        self.assertGreater(len(cases), 0)
        for case in cases:
            with self.subTest(recording=case.name):
                self.assertEqual(self.player.answer(case), case.answer)
        print(f"{len(cases)} recordings of {rpc}")

    def test_get_server_info(self):
        self.replay("GetServerInfo")

    def test_compile_operator(self):
        self.replay("CompileOperator")

    def test_execute(self):
        self.replay("Execute")

    def test_execute_stream(self):
        self.replay("ExecuteStream")

    def test_every_value_of_the_contract_is_recorded(self):
        sent = collections.defaultdict(set)

        def collect(message):
            for field, value in message.ListFields():
                is_map = isinstance(value, collections.abc.Mapping)
                values = value.values() if is_map else value if field.is_repeated else [value]
                if field.enum_type is not None:
                    sent[field.enum_type.name].update(values)
                elif field.message_type is not None:
                    if field.containing_oneof is not None:
                        sent[field.containing_oneof.full_name].add(field.name)
                    for each in values:
                        collect(each)

        for case in self.recordings.cases.values():
            for message in self.player.sent(case):
                collect(message)
        for enum in (op.AxisDirection, op.ReduceFunction, op.FeatureLevel, ts.DataType):
            # Proto3 does not send 0.
            self.assertLessEqual(set(enum.values()) - {0}, sent[enum.DESCRIPTOR.name])
        operators = op.OperatorDesc.DESCRIPTOR.oneofs_by_name["desc"]
        self.assertLessEqual({field.name for field in operators.fields}, sent[operators.full_name])
