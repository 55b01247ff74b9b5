import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

toolConformance({
  feature,
  host: () => ({
    spawn: async () => ({ exitCode: 0, signal: null, timedOut: false, stdout: 'out', stderr: '', truncated: false, sandbox: 'none' }),
  }),
  examples: [{ tool: 'shell', input: { command: 'ls' } }],
})
