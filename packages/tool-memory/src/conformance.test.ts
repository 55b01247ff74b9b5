/** The rules every tool keeps, on a memory that works. */
import type { MemoryEntry, MemoryStore } from '@sluice/sdk'
import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

function memory(): MemoryStore {
  const entries = new Map<string, MemoryEntry>()
  return {
    put: async ({ key, content, category, atMs }) => void entries.set(key, { key, content, category, updatedAtMs: atMs }),
    search: async (query, limit) => [...entries.values()].filter(({ content }) => content.includes(query)).slice(0, limit),
    get: async (key) => entries.get(key),
    delete: async (key) => entries.delete(key),
  }
}

toolConformance({
  feature,
  host: () => ({ services: { memory: memory() } }),
  examples: [
    { tool: 'memory_store', input: { key: 'home', content: 'Lisbon' } },
    { tool: 'memory_recall', input: { query: 'Lisbon' } },
    { tool: 'memory_forget', input: { key: 'home' } },
  ],
})
