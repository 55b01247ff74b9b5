/** What the agent remembers across sessions, kept apart for each caller unless the operator asks for one shared memory. */
import { defineFeature } from '@sluice/sdk'
import { memorySection } from './config.ts'
import { memoryForget } from './memory-forget.ts'
import { memoryRecall } from './memory-recall.ts'
import { memoryStore } from './memory-store.ts'

export default defineFeature({
  id: 'tool-memory',
  section: memorySection,
  build: (host, config) => ({ tools: [memoryStore(host, config), memoryRecall(host, config), memoryForget(host, config)] }),
})
