import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

toolConformance({
  feature,
  host: () => ({ workspace: memoryWorkspace({ 'a.txt': 'hello' }) }),
  examples: [
    { tool: 'file_read', input: { path: 'a.txt' } },
    { tool: 'file_write', input: { path: 'b.txt', content: 'x' } },
    { tool: 'file_edit', input: { path: 'a.txt', edits: [{ old_text: 'hello', new_text: 'bye' }] } },
    { tool: 'file_list', input: {} },
    { tool: 'grep', input: { pattern: 'hel+o' } },
    { tool: 'glob', input: { pattern: '*.txt' } },
  ],
})
