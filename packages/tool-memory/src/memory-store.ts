/** `memory_store`: keeps a text under a key. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { MemoryConfig } from './config.ts'
import { CONTENT_CHARS_MAX, categoryInput, keyInput, type MemoryHost, memoryOf, ownerOf } from './memory.ts'

export const memoryStore = (host: MemoryHost, config: MemoryConfig): Tool =>
  defineTool({
    name: 'memory_store',
    description: 'Remembers a text under a key, across sessions. A text already there under the same key is replaced.',
    risk: 'write',
    input: v.object({
      key: keyInput,
      content: v.pipe(v.string(), v.regex(/\S/, 'is empty'), v.maxLength(CONTENT_CHARS_MAX), v.description('What to remember')),
      category: v.optional(categoryInput, 'core'),
    }),
    async run({ key, content, category }, context) {
      await memoryOf(host).put({ owner: ownerOf(config, context), key, content, category, atMs: host.clock.nowMs() })
      return `Remembered ${key} (${category}).`
    },
  })
