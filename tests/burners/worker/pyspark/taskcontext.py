"""Where PySpark's workers have their task, in the form that they give it."""


class TaskContext:
    _taskContext = None

    _attemptNumber = None
    _stageId = None
    _taskAttemptId = None

    def __new__(cls):
        if cls._taskContext is None:
            cls._taskContext = object.__new__(cls)
        return cls._taskContext
