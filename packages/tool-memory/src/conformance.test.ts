import { memoryEntries } from '@sluice/testkit/memory-entries'
import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

toolConformance({
  feature,
  host: () => ({ services: { memory: memoryEntries() } }),
  examples: [
    { tool: 'memory_store', input: { key: 'home', content: 'Lisbon' } },
    { tool: 'memory_recall', input: { query: 'Lisbon' } },
    { tool: 'memory_forget', input: { key: 'home' } },
  ],
})
