"""Messages, enumerations and comments of a FileDescriptorSet, by their names."""

import re

PACKAGE = "opmill.v1"
REPEATED, MESSAGE, ENUM = 3, 11, 14  # of FieldDescriptorProto.Label and .Type


class Contract:
    def __init__(self, descriptors):
        self.messages = {}   # "opmill.v1.ReduceDesc": DescriptorProto
        self.enums = {}      # "opmill.v1.ReduceFunction": EnumDescriptorProto
        self._comments = {}  # of a message or of one of its fields, by "message" or "message.field"
        for file in descriptors.file:
            comments = {tuple(location.path): location.leading_comments or
                        location.trailing_comments for location in file.source_code_info.location}
            for index, enum in enumerate(file.enum_type):
                self.enums[f"{file.package}.{enum.name}"] = enum
            for index, message in enumerate(file.message_type):
                self._add(f"{file.package}.{message.name}", message, (4, index), comments)

    def _add(self, name, message, path, comments):
        self.messages[name] = message
        self._comments[name] = comments.get(path, "")
        for index, field in enumerate(message.field):
            self._comments[f"{name}.{field.name}"] = comments.get((*path, 2, index), "")
        for enum in message.enum_type:
            self.enums[f"{name}.{enum.name}"] = enum
        for index, nested in enumerate(message.nested_type):
            self._add(f"{name}.{nested.name}", nested, (*path, 3, index), comments)

    def message(self, name):
        return self.messages[f"{PACKAGE}.{name}"]

    def comment(self, name):
        """The comment, joined to one line."""
        return " ".join(self._comments[f"{PACKAGE}.{name}"].split())

    def choices(self, type_name):
        """The values of an enumeration in the spelling of the package: "log_sum_exp"."""
        enum = self.enums[type_name.lstrip(".")]
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"
        return [value.name.removeprefix(prefix).lower() for value in enum.value if value.number]
