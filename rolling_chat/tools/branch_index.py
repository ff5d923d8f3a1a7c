"""An in-memory index of the words of a branch, which finds the messages with a word or a part of one.

For a rare word, the index has a list of message indices; for a common one, a bitmap with one bit per message.
Bitmaps are Python integers, so that a question's words are weighed over all messages at once, in some
microseconds each for 100,000 messages. The index is updated with the branch: new messages are added, and
after a change of branch, messages that only the old one had are removed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from rolling_chat.message_lines import RECALL, piece_text, without_recall
from rolling_chat.messages import Message
from rolling_chat.search_terms import is_short, split_words

_MANY = 64  # messages; a word in more of them has a bitmap
_PART = 100_000  # characters split into words at a time, in some milliseconds
_MAX_WORDS = 2_000  # that contain a part of the question
_NO_HOLDERS = array("I")
_WEIGHT_BITS = 6  # precision of a word's weight


class BranchIndex:
    """The words of a branch's messages, by index from 1."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._holders: dict[str, array[int] | bytearray] = {}
        self._lengths = array("I", [0])  # words of each message
        self._vocabulary = "\n"  # the first `_joined` words, separated by line ends
        self._joined = 0
        self._total = 0  # words in all messages
        self._results, self._calls, self._copies = bytearray(), bytearray(), bytearray()

    def follow(self, branch: Sequence[Message]) -> None:
        """Bring the index up to date with a branch."""
        known = self._messages
        if len(branch) < len(known) or known != list(branch[: len(known)]):
            both = enumerate(zip(known, branch, strict=False))
            self._forget(
                next((at for at, (one, other) in both if one != other), min(len(known), len(branch)))
            )
        for message in branch[len(self._messages) :]:
            self._add(message)

    @property
    def messages(self) -> int:
        """The number of indexed messages."""
        return len(self._messages)

    @property
    def usual_length(self) -> float:
        """The average number of words in a message."""
        return self._total / max(1, len(self._messages))

    def length(self, index: int) -> int:
        """Return the number of words in a message."""
        return self._lengths[index]

    @property
    def results(self) -> int:
        """The bitmap of tool results."""
        return _number(self._results)

    @property
    def calls(self) -> int:
        """The bitmap of the replies that call tools."""
        return _number(self._calls)

    @property
    def copies(self) -> int:
        """The bitmap of the results of `recall`, which are copies."""
        return _number(self._copies)

    def having(self, stem: str) -> int:
        """Return the bitmap of messages with a word that contains (if it is short, begins with) `stem`."""
        bits, few = 0, bytearray(len(self._messages) // 8 + 1)
        for word in self._words_with(stem):
            holders = self._holders.get(word, _NO_HOLDERS)
            if isinstance(holders, bytearray):
                bits |= _number(holders)
            else:
                for index in holders:
                    few[index >> 3] |= 1 << (index & 7)
        return bits | _number(few)

    def _words_with(self, stem: str) -> Iterator[str]:
        """Yield `stem` itself, then at most _MAX_WORDS words that contain it."""
        yield stem
        vocabulary = self._joined_vocabulary()
        wanted = f"\n{stem}" if is_short(stem) else stem
        at = vocabulary.find(wanted)
        for _ in range(_MAX_WORDS):
            if at < 0:
                return
            end = vocabulary.find("\n", at + len(wanted))
            yield vocabulary[vocabulary.rfind("\n", 0, at + 1) + 1 : end]
            at = vocabulary.find(wanted, end)

    def _joined_vocabulary(self) -> str:
        if self._joined != len(self._holders):
            self._vocabulary = "\n".join(("", *self._holders, ""))
            self._joined = len(self._holders)
        return self._vocabulary

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        index = len(self._messages)
        if message.role == "tool":
            _set(self._results, index)
            if message.name == RECALL:
                _set(self._copies, index)
                self._lengths.append(0)
                return
        elif message.tool_calls:
            _set(self._calls, index)
        length, words = 0, set[str]()
        for part in _parts(piece_text(without_recall(message))):
            found = split_words(part)
            length += len(found)
            words.update(found)
        self._lengths.append(length)
        self._total += length
        for word in words:
            holders = self._holders.get(word)
            if holders is None:
                self._holders[word] = array("I", (index,))
            elif isinstance(holders, bytearray):
                _set(holders, index)
            else:
                holders.append(index)
                if len(holders) > _MANY:
                    self._holders[word] = _bitmap(holders)

    def _forget(self, left: int) -> None:
        """Remove all but the first `left` messages."""
        del self._messages[left:]
        self._total -= sum(self._lengths[left + 1 :])
        del self._lengths[left + 1 :]
        for bitmap in (self._results, self._calls, self._copies):
            _cut(bitmap, left)
        for word, holders in list(self._holders.items()):
            if isinstance(holders, bytearray):
                _cut(holders, left)
            else:
                del holders[bisect_left(holders, left + 1) :]
            if not holders:
                del self._holders[word]
        self._joined = -1


def best_covered(weighed: Sequence[tuple[float, int]], limit: int) -> list[int]:
    """Return the `limit` messages whose bitmaps have the greatest total weight; the newest among equals.

    The weights are added in binary for all messages at once, with a bitmap for each digit of the sums.
    """
    digits: list[int] = []
    heaviest = max((weight for weight, _ in weighed), default=0.0) or 1.0
    for weight, bitmap in weighed:
        scaled = max(1, round(weight / heaviest * (2**_WEIGHT_BITS - 1)))
        for digit in range(scaled.bit_length()):
            if scaled >> digit & 1:
                _add_bits(digits, bitmap, digit)
    sure, maybe = 0, 0
    for bits in digits:
        maybe |= bits
    for bits in reversed(digits):
        having = maybe & bits
        if (sure | having).bit_count() > limit:
            maybe = having
        else:
            sure |= having
            maybe &= ~bits
    return [*indexes_of(sure), *indexes_of(maybe)[::-1][: max(0, limit - sure.bit_count())]]


def indexes_of(bits: int) -> list[int]:
    """Return the positions of the set bits, ascending."""
    text = bin(bits)[:1:-1]
    found, at = [], text.find("1")
    while at >= 0:
        found.append(at)
        at = text.find("1", at + 1)
    return found


def bitmap_of(indexes: Iterable[int]) -> int:
    """Return the bitmap with these bits set."""
    if isinstance(indexes, range) and indexes.step == 1:
        return (1 << max(indexes.stop, 0)) - (1 << max(indexes.start, 0)) if indexes else 0
    return _number(_bitmap(list(indexes)))


def _parts(text: str) -> Iterator[str]:
    """Cut a long text between lines or words, because splitting it all at once would block other threads."""
    start = 0
    while start < len(text):
        low, high = start + _PART, start + 2 * _PART
        end = text.find("\n", low, high) + 1 or text.find(" ", low, high) + 1 or high
        yield text[start:end]
        start = end


def _add_bits(digits: list[int], bits: int, digit: int) -> None:
    while bits:
        while len(digits) <= digit:
            digits.append(0)
        digits[digit], bits = digits[digit] ^ bits, digits[digit] & bits
        digit += 1


def _bitmap(indexes: Sequence[int]) -> bytearray:
    made = bytearray(max(indexes, default=0) // 8 + 1)
    for index in indexes:
        made[index >> 3] |= 1 << (index & 7)
    return made


def _set(bitmap: bytearray, index: int) -> None:
    if len(bitmap) <= index >> 3:
        bitmap.extend(bytes((index >> 3) + 1 - len(bitmap)))
    bitmap[index >> 3] |= 1 << (index & 7)


def _cut(bitmap: bytearray, left: int) -> None:
    """Clear the bits above `left`; a bitmap without any becomes empty."""
    del bitmap[(left >> 3) + 1 :]
    if len(bitmap) == (left >> 3) + 1:
        bitmap[-1] &= (2 << (left & 7)) - 1
    if not any(bitmap):
        bitmap.clear()


def _number(bitmap: bytes | bytearray) -> int:
    return int.from_bytes(bitmap, "little")
