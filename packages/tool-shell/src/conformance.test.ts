import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

toolConformance({
  feature,
  host: () => ({
    spawn: async () => ({ exitCode: 0, signal: null, timedOut: false, stdout: 'out', stderr: '', truncated: false, sandbox: 'none' }),
  }),
  examples: [
    { tool: 'shell', input: { command: 'ls' } },
    { tool: 'shell_wait', input: { id: 'abc123', timeout_secs: 1 } },
    { tool: 'shell_stop', input: { id: 'abc123' } },
  ],
})
