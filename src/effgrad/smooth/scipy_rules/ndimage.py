RULES: list[tuple[object, str, object]] = []
