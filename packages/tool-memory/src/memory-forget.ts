/** `memory_forget`: removes one memory. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { keyInput, type MemoryHost, memoryOf } from './memory.ts'

export const memoryForget = (host: MemoryHost): Tool =>
  defineTool({
    name: 'memory_forget',
    description: 'Forgets what was remembered under a key.',
    risk: 'write',
    input: v.object({ key: keyInput }),
    async run({ key }) {
      return (await memoryOf(host).delete(key)) ? `Forgot ${key}.` : `Nothing was remembered under ${key}.`
    },
  })
