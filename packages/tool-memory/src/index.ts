/** Lets the agent remember texts across sessions, separately for each caller unless the operator asks for one shared memory. */
import { defineFeature } from '@sluice/sdk'
import { memorySection } from './config.ts'
import { recall } from './find-memories.ts'
import { memoryForget, memoryRecall, memoryStore } from './memory-tools.ts'

export default defineFeature({
  id: 'tool-memory',
  section: memorySection,
  build: (host, config) => ({
    tools: [memoryStore(host, config), memoryRecall(host, config), memoryForget(host, config)],
    services: {
      async recall(reader, text) {
        const memories = host.service('memory')
        return memories ? recall(memories, reader, text) : []
      },
    },
  }),
})
