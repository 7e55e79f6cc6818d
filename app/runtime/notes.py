"""What a device and the threads of a run have to say: said once, then counted."""

from palpo.app.cli.progress import Progress


class Notes:
    """Sentences, each told to the user when it comes first."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._times: dict[str, int] = {}

    def add(self, words: str, times: int = 1) -> None:
        """Say it the first time, and count it from then on."""
        if words not in self._times:
            self._progress.say(words)
        self._times[words] = self._times.get(words, 0) + times

    def add_once(self, words: str) -> None:
        """Say what may come again and again, and count it once."""
        if words not in self._times:
            self.add(words)

    def all(self) -> list[str]:
        """Every sentence, with how often it was said."""
        return [words if n == 1 else f"{words}, {n} times" for words, n in self._times.items()]
