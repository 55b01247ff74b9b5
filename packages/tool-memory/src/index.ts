/**
 * What the agent remembers across sessions. The memory is the agent's and not a client's: everybody who talks to it
 * shares it, so what one client has it remember, another can have it recall (§1 item 4: state that is shared on purpose).
 */
import { defineFeature } from '@sluice/sdk'
import { memoryForget } from './memory-forget.ts'
import { memoryRecall } from './memory-recall.ts'
import { memoryStore } from './memory-store.ts'

export default defineFeature({
  id: 'tool-memory',
  build: (host) => ({ tools: [memoryStore(host), memoryRecall(host), memoryForget(host)] }),
})
