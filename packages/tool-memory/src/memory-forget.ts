/** `memory_forget`: removes one memory. */
import { defineTool, SHARED_MEMORIES, type Tool, UNOWNED_MEMORIES } from '@sluice/sdk'
import * as v from 'valibot'
import type { MemoryConfig } from './config.ts'
import { keyInput, type MemoryHost, memoryOf, ownerOf } from './memory.ts'

export const memoryForget = (host: MemoryHost, config: MemoryConfig): Tool =>
  defineTool({
    name: 'memory_forget',
    description: 'Forgets what was remembered under a key.',
    risk: 'write',
    input: v.object({ key: keyInput }),
    async run({ key }, context) {
      const memory = memoryOf(host)
      if (await memory.delete(ownerOf(config, context), key)) return `Forgot ${key}.`
      const others = await Promise.all([SHARED_MEMORIES, UNOWNED_MEMORIES].map((owner) => memory.get(owner, key)))
      if (others.some((entry) => entry)) return `${key} is shared by all clients and stays: only the operator can remove it.`
      return `Nothing was remembered under ${key}.`
    },
  })
