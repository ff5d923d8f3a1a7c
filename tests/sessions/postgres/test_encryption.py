"""The way to the database is encrypted, and leads to the right one: by real handshakes."""

from __future__ import annotations

import datetime
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.address import Address
from rolling_chat.sessions.records import StoreError
from tests.support.postgres import ADMIN, Server, own_server
from tests.support.sessions import new_session

HOST, OTHER_HOST = "db.example.org", "other.example.org"


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that a test trusts or not."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def made(cls, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        return cls(key, _certificate(names, key, names, key, basic))

    def certify(self, host: str) -> tuple[str, str]:
        """Return a certificate for a host, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        alternatives = x509.SubjectAlternativeName([x509.DNSName(host)])
        certificate = _certificate(names, key, self.certificate.subject, self.key, alternatives)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return _pem(certificate), secret.decode()

    def save(self, path: Path) -> Path:
        path.write_text(_pem(self.certificate))
        return path


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signed_by: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    return builder.add_extension(extension, critical=False).sign(signed_by, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@dataclass(frozen=True, slots=True)
class Encrypted:
    """A server that speaks TLS, and the files of the authority that certified it and of another."""

    port: int
    trusted: Path
    unknown: Path

    def url(self, host: str = HOST, **options: object) -> str:
        """Return its address by a name that leads to this machine."""
        given = {"hostaddr": "127.0.0.1", "sslmode": "verify-full", "sslrootcert": self.trusted, **options}
        return f"postgresql://{ADMIN}@{host}:{self.port}/postgres?" + "&".join(
            f"{name}={value}" for name, value in given.items()
        )


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[Encrypted]:
    trusted, unknown = Authority.made("trusted"), Authority.made("unknown")
    port = _free_port()

    def with_tls(server: Server) -> Server:
        certificate, key = trusted.certify(HOST)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "ssl": "on",
            "ssl_cert_file": str(server.put("server.crt", certificate)),
            "ssl_key_file": str(server.put("server.key", key)),
        }
        return replace(server, settings=tuple(settings.items()))

    with own_server(with_tls, needs_tls=True):
        yield Encrypted(port, trusted.save(tmp_path / "trusted.crt"), unknown.save(tmp_path / "unknown.crt"))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_only_the_right_server_is_spoken_to(encrypted: Encrypted) -> None:
    store = open_store(encrypted.url())
    session = new_session(store).id
    store.close()
    with psycopg.connect(Address.of(encrypted.url()).conninfo) as connection:
        asked = "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert connection.execute(asked).fetchone() in {(True, "TLSv1.3"), (True, "TLSv1.2")}
        assert connection.execute("SELECT id FROM rolling_chat.session").fetchone() == (session,)
    for url, said in (
        (
            encrypted.url(OTHER_HOST),
            r'for "db\.example\.org" does not match .*; name the host in the address',
        ),
        (
            encrypted.url(sslrootcert=encrypted.unknown),
            r"certificate verify failed; sslrootcert in the address",
        ),
    ):
        with pytest.raises(StoreError, match=said) as caught:
            open_store(url)
        assert "\n" not in str(caught.value)


class Listener:
    """A server that has no TLS, and remembers all that it was told."""

    def __init__(self) -> None:
        self.heard = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                while heard := client.recv(4096):
                    self.heard += heard
                    client.sendall(b"N")  # no TLS here

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


def test_no_password_goes_to_a_server_without_encryption() -> None:
    listener = Listener()
    try:
        place = f"postgresql://ada:hush-hush@{HOST}:{listener.port}/sessions?hostaddr=127.0.0.1"
        with pytest.raises(StoreError, match="must be encrypted; add sslmode=verify-full") as refused:
            open_store(place)
        assert listener.heard == b""
        with pytest.raises(
            StoreError, match=r"cannot be opened: .* does not support SSL.*; have its"
        ) as caught:
            open_store(f"{place}&sslmode=require")
    finally:
        listener.close()
    assert b"hush" not in listener.heard
    assert b"ada" not in listener.heard
    for error in (refused, caught):
        assert "\n" not in str(error.value)
        assert "hush" not in str(error.value)
