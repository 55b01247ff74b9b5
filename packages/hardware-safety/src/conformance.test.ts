import { toolConformance } from '@sluice/testkit/tool'
import * as v from 'valibot'
import feature from './index.ts'
import { robotToml } from './robot-toml.ts'
import { inlineCompanion } from './testing/inline-companion.ts'

toolConformance({
  feature,
  host: () => ({
    companion: inlineCompanion().start,
    services: { readToml: async () => v.parse(robotToml, {}) as never, audit: async () => undefined },
  }),
  examples: [
    { tool: 'drive', input: { action: 'forward', distance: 1 } },
    { tool: 'drive', input: { action: 'stop' } },
    { tool: 'sense', input: {} },
    { tool: 'estop_reset', input: {} },
  ],
})
