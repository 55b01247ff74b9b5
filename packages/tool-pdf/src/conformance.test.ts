import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'
import { handMade } from './testing/hand-made.ts'

toolConformance({
  feature,
  host: () => ({ workspace: memoryWorkspace({ 'a.pdf': handMade({ pages: ['hello'] }) }) }),
  examples: [{ tool: 'pdf_read', input: { path: 'a.pdf' } }],
})
