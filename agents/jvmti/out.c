#include "map.h"
#include "sys.h"

enum { BUFFER_BYTES = 256 << 10 };

#if defined(__x86_64__)
static const uint32_t MACHINE = 62;
#else
static const uint32_t MACHINE = 183;
#endif

void map_fail(struct map *map, enum failure failure)
{
    int none = DONE;
    atomic_compare_exchange_strong(&map->failure, &none, (int)failure);
}

static bool bytes_room(struct bytes *bytes, size_t wanted)
{
    if (wanted <= bytes->room)
        return true;
    size_t room = bytes->room;
    while (room < wanted)
        room *= 2;
    uint8_t *at = sys_remap(bytes->at, bytes->room, room);
    if (at == NULL)
        return false;
    bytes->at = at;
    bytes->room = room;
    return true;
}

bool bytes_make(struct bytes *bytes, size_t room)
{
    bytes->at = sys_map(room);
    bytes->size = 0;
    bytes->room = bytes->at == NULL ? 0 : room;
    return bytes->at != NULL;
}

void bytes_free(struct bytes *bytes)
{
    if (bytes->at != NULL)
        sys_unmap(bytes->at, bytes->room);
    bytes->at = NULL;
}

uint8_t *bytes_add(struct bytes *bytes, size_t more)
{
    if (!bytes_room(bytes, bytes->size + more))
        return NULL;
    uint8_t *added = bytes->at + bytes->size;
    bytes->size += more;
    return added;
}

static void write_all(struct map *map, const uint8_t *from, size_t size)
{
    while (size > 0 && map->failure == DONE) {
        long done = sys_write(map->fd, from, size);
        if (done == SYS_INTERRUPTED)
            continue;
        if (done <= 0) {
            map_fail(map, CANNOT_WRITE);
            return;
        }
        from += done;
        size -= (size_t)done;
    }
}

static void flush(struct map *map)
{
    write_all(map, map->out.at, map->out.size);
    map->out.size = 0;
}

static void put(struct map *map, const void *from, size_t size)
{
    map->written += size;
    if (map->written > OUTPUT_BYTES)
        map_fail(map, TOO_LARGE);
    if (map->out.size + size > BUFFER_BYTES)
        flush(map);
    if (size > BUFFER_BYTES) {
        write_all(map, from, size);
        return;
    }
    __builtin_memcpy(map->out.at + map->out.size, from, size);
    map->out.size += size;
}

bool out_begin(struct map *map)
{
    const uint32_t version_and_machine[2] = {1, MACHINE};
    if (!bytes_make(&map->out, BUFFER_BYTES))
        return false;
    put(map, "HPROFMAP", 8);
    put(map, version_and_machine, sizeof version_and_machine);
    return true;
}

void out_record(struct map *map, enum record kind, const void *head, size_t head_size, const void *body, size_t size)
{
    if (map->failure != DONE)
        return;
    const uint32_t start[2] = {kind, (uint32_t)(head_size + size)};
    put(map, start, sizeof start);
    put(map, head, head_size);
    put(map, body, size);
    if (kind < END)
        map->records[kind]++;
}

void out_end(struct map *map)
{
    const uint64_t counts[5] = {map->records[NAME], map->records[CODE], map->records[STUB], map->records[UNLOAD],
                                map->without_inlining};
    out_record(map, END, counts, sizeof counts, NULL, 0);
    if (map->failure == DONE)
        flush(map);
}
