#include "map.h"

/* The head of a code record; see PERFMAP.md. */
struct __attribute__((packed)) code_head {
    uint64_t start;
    uint32_t length, method, ranges;
};

struct __attribute__((packed)) range_head {
    uint32_t end;
    uint16_t keep, add;
};

/* The ranges of one piece of code, built in map->record. */
struct ranges {
    struct map *map;
    JNIEnv *jni;
    uint64_t start;
    uint32_t length;
    uint32_t method; /* its name */
    uint32_t count;
    size_t last; /* where in map->record the last range begins */
    const PCStackInfo *stack; /* of the last range */
};

/* The i-th frame of a stack, outermost first; the JVM lists the innermost first. */
static jmethodID frame(const PCStackInfo *stack, int i)
{
    return stack->methods[stack->numstackframes - 1 - i];
}

static int common_frames(const PCStackInfo *one, const PCStackInfo *other)
{
    int i = 1; /* the outermost is the method itself */
    while (i < one->numstackframes && i < other->numstackframes && frame(one, i) == frame(other, i))
        i++;
    return i;
}

static struct range_head *last_range(const struct ranges *ranges)
{
    return (struct range_head *)(ranges->map->record.at + ranges->last);
}

static uint32_t name_at(struct ranges *ranges, const PCStackInfo *stack, int i)
{
    return i == 0 ? ranges->method : name_of_method(ranges->map, ranges->jni, frame(stack, i));
}

/* Adds a range; false if the record gets too large or there is no memory. */
static bool add_range(struct ranges *ranges, uint32_t end, const PCStackInfo *stack, int keep)
{
    struct bytes *record = &ranges->map->record;
    size_t names = (size_t)(stack->numstackframes - keep);
    size_t size = sizeof(struct range_head) + names * sizeof(uint32_t);
    if (record->size + size > RECORD_BYTES - sizeof(struct code_head))
        return false;
    uint8_t *at = bytes_add(record, size);
    if (at == NULL) {
        map_fail(ranges->map, NO_MEMORY);
        return false;
    }
    *(struct range_head *)at = (struct range_head){end, (uint16_t)keep, (uint16_t)names};
    at += sizeof(struct range_head);
    for (size_t i = 0; i < names; i++, at += sizeof(uint32_t)) {
        uint32_t name = name_at(ranges, stack, keep + (int)i);
        __builtin_memcpy(at, &name, sizeof name);
    }
    ranges->last = (size_t)(at - record->at) - size;
    ranges->stack = stack;
    ranges->count++;
    return true;
}

/* The code up to and including the JVM's place `stack`; see PERFMAP.md on where a range ends. */
static bool add_place(struct ranges *ranges, const PCStackInfo *stack)
{
    uint64_t offset = (uint64_t)(uintptr_t)stack->pc - ranges->start;
    uint32_t reached = ranges->count == 0 ? 0 : last_range(ranges)->end;
    if (offset >= ranges->length || offset < reached || stack->numstackframes <= 0 || stack->methods == NULL)
        return true; /* not in this code, or the JVM itself uses an earlier one */
    if (stack->numstackframes > FRAMES)
        return false;
    uint32_t end = (uint32_t)offset + 1;
    int keep = ranges->count == 0 ? 0 : common_frames(ranges->stack, stack);
    if (keep > 0 && keep == stack->numstackframes && keep == ranges->stack->numstackframes) {
        last_range(ranges)->end = end;
        return true;
    }
    return add_range(ranges, end, stack, keep);
}

static const jvmtiCompiledMethodLoadInlineRecord *inline_record(const void *compile_info)
{
    const jvmtiCompiledMethodLoadRecordHeader *record = compile_info;
    while (record != NULL && record->kind != JVMTI_CMLR_INLINE_INFO)
        record = record->next;
    if (record == NULL || record->majorinfoversion != JVMTI_CMLR_MAJOR_VERSION_1)
        return NULL;
    return (const jvmtiCompiledMethodLoadInlineRecord *)record;
}

static void add_places(struct ranges *ranges, const jvmtiCompiledMethodLoadInlineRecord *inlined)
{
    for (int i = 0; i < inlined->numpcs; i++) {
        if (!add_place(ranges, &inlined->pcinfo[i])) {
            ranges->map->without_inlining++;
            ranges->map->record.size = 0;
            ranges->count = 0;
            return;
        }
    }
}

void code_loaded(struct map *map, jmethodID method, uint64_t start, uint32_t length, const void *compile_info)
{
    JNIEnv *jni = NULL;
    if ((*map->vm)->GetEnv(map->vm, (void **)&jni, JNI_VERSION_1_2) != JNI_OK) {
        map_fail(map, NOT_ALL_EVENTS);
        return;
    }
    const jvmtiCompiledMethodLoadInlineRecord *inlined = inline_record(compile_info);
    struct ranges ranges = {.map = map, .jni = jni, .start = start, .length = length};
    ranges.method = name_of_method(map, jni, method);
    map->record.size = 0;
    if (inlined != NULL && inlined->pcinfo != NULL)
        add_places(&ranges, inlined);
    const struct code_head head = {start, length, ranges.method, ranges.count};
    out_record(map, CODE, &head, sizeof head, map->record.at, map->record.size);
}
