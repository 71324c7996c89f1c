"""What well-known code does, by the names of its methods; a table, which tests compare with real class files.

A name is matched from its beginning, and `/` stands for a dot too: engines write both. A family's first
words end "47 points …", its second "31 % goes to …".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hprofiler.analysis.words import package_length


@dataclass(frozen=True)
class Family:
    """Methods that do one thing: what they do ("match regular expressions"), and the doing of it."""

    name: str
    points: str
    doing: str
    patterns: tuple[str, ...]


# An earlier family wins a name that two could have. What calls back into anybody's code (proxies, reflection,
# pools, handlers of a pipeline) is in none: all that runs below would be theirs.
FAMILIES = (
    Family(
        "regex compile",
        "compile regular expressions",
        "compiling regular expressions",
        (
            r"java/util/regex/Pattern\.(?:compile|<init>|expr|sequence|atom|clazz|closure|group0|range|newSlice"
            r"|accept|addFlag|RemoveQEQuoting|normalize|bitsOrSingle|newCharProperty|curly|single)$",
            r"com/google/re2j/(?:Parser|Compiler|Simplify|RE2\.compile|Pattern\.compile)",
        ),
    ),
    Family(
        "regex match",
        "match regular expressions",
        "matching regular expressions",
        (
            r"java/util/regex/(?:Matcher\.|Pattern\$|Pattern\.(?:split|matches|asPredicate))",
            r"com/google/re2j/(?:Matcher|Machine|DFA)",
            r"org/joni/",
        ),
    ),
    Family(
        "stack traces",
        "fill in stack traces of exceptions",
        "stack traces of exceptions",
        (
            r"java/lang/Throwable\.(?:fillInStackTrace|getStackTrace|getOurStackTrace|printStackTrace)",
            r"java/lang/StackTraceElement",
            r"java_lang_Throwable::",
            r"JVM_FillInStackTrace",
        ),
    ),
    Family(
        "dates",
        "format or parse dates",
        "formatting and parsing dates",
        (
            r"java/text/(?:SimpleDateFormat|DateFormat|DateFormatSymbols)",
            r"java/time/format/",
            r"org/joda/time/format/",
        ),
    ),
    Family(
        "formatting",
        "format text",
        "formatting text",
        (
            r"java/util/Formatter",
            r"java/lang/String\.format",
            r"java/text/(?:MessageFormat|DecimalFormat|NumberFormat|ChoiceFormat|DigitList)",
        ),
    ),
    Family(
        "serialization",
        "serialize or deserialize objects",
        "serializing and deserializing objects",
        (
            r"java/io/Object(?:Output|Input)Stream",
            r"java/io/ObjectStreamClass",
            r"com/esotericsoftware/kryo/(?!kryo5/util/|util/Pool)",
            r"com/twitter/chill/",
            r"org/nustaq/serialization/",
            r"com/caucho/hessian/",
        ),
    ),
    Family(
        "records",
        "encode or decode Avro, Protocol Buffers or Thrift",
        "encoding and decoding Avro, Protocol Buffers or Thrift",
        (
            r"org/apache/avro/(?:io|generic|specific|file|reflect|data)/",
            r"com/google/protobuf/",
            r"org/apache/thrift/protocol/",
        ),
    ),
    Family(
        "json",
        "read or write JSON",
        "reading and writing JSON",
        (
            r"com/fasterxml/jackson/(?:core|databind|module)/",
            r"org/codehaus/jackson/",
            r"com/google/gson/",
            r"com/alibaba/fastjson2?/",
            r"org/json/",
            r"org/json4s/",
            r"net/minidev/json/",
        ),
    ),
    Family(
        "xml",
        "read or write XML",
        "reading and writing XML",
        (
            r"com/sun/org/apache/(?:xerces|xml|xalan|xpath)/",
            r"org/apache/(?:xerces|xalan|xml/serialize)/",
            r"com/ctc/wstx/",
            r"org/codehaus/stax2?/",
            r"org/dom4j/",
        ),
    ),
    Family(
        "compression",
        "compress or decompress",
        "compressing and decompressing",
        (
            r"java/util/zip/(?:De|In)flater(?:Input|Output)?",
            r"java/util/zip/GZIP",
            r"Java_java_util_zip_(?:De|In)flater",
            r"org/xerial/snappy/",
            r"org/iq80/snappy/",
            r"net/jpountz/lz4/",
            r"com/github/luben/zstd/",
            r"io/airlift/compress/",
            r"org/apache/hadoop/io/compress/(?!CodecPool)",
            r"org/apache/commons/compress/compressors/",
            r"snappy::",
            r"(?:ZSTD|LZ4|LZ4F|HUF|FSE)_[a-zA-Z]",
        ),
    ),
    Family(
        "hashes",
        "compute checksums and digests",
        "checksums and digests",
        (
            r"java/util/zip/(?:CRC32C?|Adler32|CheckedInputStream|CheckedOutputStream)\.",
            r"java/security/MessageDigest",
            r"sun/security/provider/(?:MD[245]|SHA\d?|DigestBase)",
            r"org/apache/hadoop/util/(?:DataChecksum|PureJavaCrc32C?|NativeCrc32)",
            r"com/google/common/hash/",
            r"org/apache/commons/codec/digest/",
            r"net/jpountz/xxhash/",
        ),
    ),
    Family(
        "crypto",
        "encrypt, decrypt or sign",
        "encrypting, decrypting and signing",
        (
            r"javax/crypto/",
            r"com/sun/crypto/provider/",
            r"sun/security/(?:ssl/(?:Cipher|SSLCipher|SSLEngine(?:Input|Output)Record|SSLSocket(?:Input|Output)Record)|rsa|ec)",
            r"java/security/Signature",
            r"org/bouncycastle/(?:crypto|jcajce|math)/",
            r"(?:EVP|AES|RSA|aesni|gcm)_[a-zA-Z]",
        ),
    ),
    Family(
        "logging",
        "write logs",
        "writing logs",
        (
            r"org/apache/log4j/",
            r"org/apache/logging/(?:log4j|slf4j)/",
            r"ch/qos/logback/",
            r"org/slf4j/",
            r"java/util/logging/",
            r"org/apache/commons/logging/",
        ),
    ),
    Family(
        "class loading",
        "load classes",
        "loading classes",
        (
            r"java/lang/ClassLoader\.(?:loadClass|defineClass|findClass|findBootstrapClass)",
            r"java/net/URLClassLoader\.(?:findClass|defineClass)",
            r"jdk/internal/loader/(?:BuiltinClassLoader|ClassLoaders)",
            r"sun/misc/Launcher\$AppClassLoader",
            r"java/lang/Class\.forName",
            r"(?:SystemDictionary|ClassFileParser|ClassLoader|InstanceKlass)::",
        ),
    ),
    Family(
        "big numbers",
        "compute with BigDecimal and BigInteger",
        "arithmetic of BigDecimal and BigInteger",
        (r"java/math/(?:BigDecimal|BigInteger|MutableBigInteger)\.",),
    ),
)

# Code that serves others: what it costs is its caller's.
_LIBRARY = re.compile(
    r"(?:java|javax|jdk|sun|com[./]sun|scala|kotlin|clojure|groovy|org[./]codehaus[./]groovy)[./]"
)
_JAVA = ("interpreted", "c1", "jit", "inlined")


def _either(pattern: str) -> str:
    return pattern.replace("/", "[./]")


_FAMILY = re.compile(
    "|".join(f"(?P<f{n}>{'|'.join(map(_either, one.patterns))})" for n, one in enumerate(FAMILIES))
)


def family_of(name: str) -> Family | None:
    """The family of a method, by its name; None for one of none."""
    found = _FAMILY.match(name)
    return FAMILIES[int(str(found.lastgroup)[1:])] if found else None


def is_own(name: str, kind: str) -> bool:
    """Whether a frame is of the job's own code: Java, and neither the JDK's nor a family's."""
    java = "." in name if kind in _JAVA else kind == "plain" and package_length(name) > 0
    return java and not _LIBRARY.match(name) and family_of(name) is None


# Frames and thread groups of the JVM's own work; patterns of the core's regular expressions.
GC: list[str] = [
    r"^\[(?:GC |G1 |ParGC|Parallel GC|Gang worker|Concurrent Mark|Shenandoah"
    r"|[ZX](?:Worker|Driver|Director|Stat|Unmapper|Uncommitter))",
    r"^(?:GangWorker|AbstractGangWorker|WorkerThread|GCTaskThread|ConcurrentGCThread|ConcurrentMarkSweepThread"
    r"|ConcurrentMarkThread|ConcurrentG1RefineThread|G1ServiceThread|ZWorkerThread)::",
    r"^VM_(?:\w*(?:Collect|GC)\w*|CMS_\w+|G1\w+|Shenandoah\w*|[ZX]\w*Operation|[ZX]Mark\w*|[ZX]Reloc\w*)::",
]
JIT: list[str] = [r"^\[(?:C[12] Compiler|JVMCI|Libgraal)", r"^(?:CompileBroker|CompilerThread)::"]
