/** A browser for the agent (§2.6 `[browser]`, §2.7 `browser-native`): one tool, three ways to drive one. */
import { defineFeature, type Finding, type Host } from '@sluice/sdk'
import { AgentBackend } from './agent/agent-backend.ts'
import type { Backend } from './backend.ts'
import { browserTool } from './browser-tool.ts'
import { ComputerUseBackend } from './computer-use/computer-use-backend.ts'
import { type BrowserConfig, browserSection } from './config.ts'
import { NativeBackend } from './native/native-backend.ts'
import { createUrlGuard } from './url-guard.ts'

const createBackend = (host: Host, config: BrowserConfig): Backend => {
  const guard = createUrlGuard(host, config.allowed_domains)
  switch (config.backend) {
    case 'agent_browser':
      return new AgentBackend(host, config, guard)
    case 'native':
      return new NativeBackend(host, config, guard)
    case 'computer_use':
      return new ComputerUseBackend(host, config, guard)
  }
}

const NOTHING_ALLOWED: Finding = {
  status: 'warn',
  detail: 'allowed_domains is empty, so no page is opened',
  fix: 'name the domains the agent may visit: allowed_domains under [browser]',
}

export default defineFeature({
  id: 'tool-browser',
  section: browserSection,
  build(host, config) {
    const backend = createBackend(host, config)
    return {
      ...(!config.enabled && { off: '`enabled` is false' }),
      tools: [browserTool(backend)],
      check: async (signal) => [...(config.allowed_domains.length === 0 ? [NOTHING_ALLOWED] : []), ...(await backend.check(signal))],
      close: () => backend.close(),
    }
  },
})
