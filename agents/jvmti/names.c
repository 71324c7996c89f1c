#include "map.h"
#include "sys.h"

enum { FIRST_SLOTS = 32768 };

static const char UNLOADED[] = "[unknown_Java]";

bool names_make(struct names *names)
{
    names->slots = sys_map(FIRST_SLOTS * sizeof *names->slots);
    names->count = 0;
    names->room = names->slots == NULL ? 0 : FIRST_SLOTS;
    return names->slots != NULL;
}

void names_free(struct names *names)
{
    if (names->slots != NULL)
        sys_unmap(names->slots, names->room * sizeof *names->slots);
    names->slots = NULL;
}

/* The slot of a method, or the empty one where it belongs. */
static struct known *slot_of(const struct names *names, jmethodID method)
{
    size_t mask = names->room - 1;
    size_t at = (size_t)(((uint64_t)(uintptr_t)method * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (names->slots[at].method != NULL && names->slots[at].method != method)
        at = (at + 1) & mask;
    return &names->slots[at];
}

static bool grow(struct names *names)
{
    struct names larger = {.count = names->count, .room = names->room * 2};
    larger.slots = sys_map(larger.room * sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i].method != NULL)
            *slot_of(&larger, names->slots[i].method) = names->slots[i];
    names_free(names);
    *names = larger;
    return true;
}

/* Appends text to map->name as far as it fits. */
static size_t append(struct map *map, size_t size, const char *text)
{
    while (*text != '\0' && size < NAME_BYTES)
        map->name[size++] = *text++;
    return size;
}

static uint32_t write_name(struct map *map, size_t size)
{
    uint32_t number = (uint32_t)map->records[NAME];
    out_record(map, NAME, map->name, size, NULL, 0);
    return number;
}

uint32_t name_of_text(struct map *map, const char *text)
{
    return write_name(map, append(map, 0, text != NULL && *text != '\0' ? text : "[unknown]"));
}

/* The class may be unloaded at any time, which is no failure. Other errors leave the map incomplete. */
static void note_error(struct map *map, jvmtiError error)
{
    if (error == JVMTI_ERROR_OUT_OF_MEMORY)
        map_fail(map, NO_MEMORY);
    else if (error == JVMTI_ERROR_WRONG_PHASE || error == JVMTI_ERROR_UNATTACHED_THREAD)
        map_fail(map, NOT_ALL_EVENTS);
}

/* "Ljava/util/HashMap;" into map->name without its first and last letter; returns the size, 0 if it has none. */
static size_t append_class(struct map *map, JNIEnv *jni, jmethodID method)
{
    jvmtiEnv *jvmti = map->jvmti;
    jclass class = NULL;
    char *signature = NULL;
    jvmtiError error = (*jvmti)->GetMethodDeclaringClass(jvmti, method, &class);
    if (error == JVMTI_ERROR_NONE) {
        error = (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL);
        (*jni)->DeleteLocalRef(jni, class);
    }
    note_error(map, error);
    if (error != JVMTI_ERROR_NONE || signature == NULL)
        return 0;
    size_t size = append(map, 0, signature[0] == 'L' ? signature + 1 : signature);
    if (size > 0 && map->name[size - 1] == ';')
        size--;
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    return append(map, size, ".");
}

/* Appends the method's own name; 0 if the method is gone. */
static size_t append_method(struct map *map, size_t size, jmethodID method)
{
    jvmtiEnv *jvmti = map->jvmti;
    char *name = NULL;
    jvmtiError error = (*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL);
    note_error(map, error);
    if (error != JVMTI_ERROR_NONE || name == NULL)
        return 0;
    size = append(map, size, name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    return size;
}

uint32_t name_of_method(struct map *map, JNIEnv *jni, jmethodID method)
{
    if (method == NULL)
        return name_of_text(map, UNLOADED);
    struct known *slot = slot_of(&map->names, method);
    if (slot->method == method)
        return slot->name;
    size_t size = append_class(map, jni, method);
    if (size > 0)
        size = append_method(map, size, method);
    *slot = (struct known){method, size > 0 ? write_name(map, size) : name_of_text(map, UNLOADED)};
    uint32_t name = slot->name;
    map->names.count++;
    if (map->names.count * 2 > map->names.room && !grow(&map->names))
        map_fail(map, NO_MEMORY);
    return name;
}
