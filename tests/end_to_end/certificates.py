"""Authorities and certificates for tests."""

import dataclasses
import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_HOUR = datetime.timedelta(hours=1)


@dataclasses.dataclass
class Pair:
    """PEM texts."""

    certificate: bytes
    key: bytes

    def write(self, directory, name):
        """Writes the files name.crt and name.key, each atomically."""
        for suffix, text in ((".crt", self.certificate), (".key", self.key)):
            write(pathlib.Path(directory) / (name + suffix), text)


def write(path, text):
    new = path.with_suffix(".new")
    new.write_bytes(text)
    new.replace(path)


def _name(common_name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _san(hosts):
    names = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return x509.SubjectAlternativeName(names)


class Authority:
    def __init__(self, name):
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._builder(self._name, self._key, -_HOUR, 24 * _HOUR).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = self._sign(certificate)

    def issue(self, name, hosts=(), begins=-_HOUR, ends=24 * _HOUR):
        """A certificate; its validity is relative to the present time."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(name), key, begins, ends)
        if hosts:
            builder = builder.add_extension(_san(hosts), critical=False)
        return Pair(self._sign(builder), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()))

    def _builder(self, subject, key, begins, ends):
        now = datetime.datetime.now(datetime.timezone.utc)
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
                .public_key(key.public_key()).serial_number(x509.random_serial_number())
                .not_valid_before(now + begins).not_valid_after(now + ends))

    def _sign(self, builder):
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
