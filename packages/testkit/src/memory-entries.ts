/** Agent memory in this process. A search finds the entries that contain every word of the query, newest first; every entry is similar to every text. */
import { type Memories, type MemoryEntry, SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'

/** Creates an empty memory. */
export function memoryEntries(): Memories {
  const kept = new Map<string, MemoryEntry>()
  const id = (owner: string, key: string) => JSON.stringify([owner, key])
  const isReadable = (reader: string, { owner, key }: MemoryEntry) =>
    owner === reader || ((owner === SHARED_MEMORIES || owner === UNOWNED_MEMORIES) && !kept.has(id(reader, key)))
  return {
    async put({ atMs, ...entry }) {
      kept.delete(id(entry.owner, entry.key))
      kept.set(id(entry.owner, entry.key), { ...entry, updatedAtMs: atMs })
    },
    search: async (reader, query, limit) =>
      [...kept.values()]
        .reverse()
        .filter((entry) => isReadable(reader, entry))
        .filter(({ key, content }) => query.split(/\s+/).every((word) => `${key} ${content}`.includes(word)))
        .slice(0, limit),
    similar: async (reader, _text, limit) =>
      [...kept.values()]
        .reverse()
        .filter((entry) => isReadable(reader, entry))
        .slice(0, limit),
    get: async (owner, key) => kept.get(id(owner, key)),
    delete: async (owner, key) => kept.delete(id(owner, key)),
    count: async (owner) => [...kept.values()].filter((entry) => entry.owner === owner).length,
  }
}
