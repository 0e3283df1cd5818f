"""MAM and EFF, the calculi of Sigal 2024, chapter 7, and the handlers of chapter 8. Begin with `reading.py`."""
