/** A browser for the agent: one tool, three ways to drive one. */
import { hasProgram } from '@sluice/kit'
import { defineFeature, type Finding, type Host } from '@sluice/sdk'
import { BROWSER_ACTIONS, DESKTOP_ACTIONS } from './actions.ts'
import type { Backend } from './backend.ts'
import { browserTool } from './browser-tool.ts'
import { type BrowserConfig, browserSection } from './config.ts'
import { type Candidate, FirstUsable } from './first-usable.ts'
import { lazyBackend } from './lazy-backend.ts'
import { lacksNative } from './native/find-chromium.ts'
import { createUrlGuard } from './url-guard.ts'

const createBackend = (host: Host, config: BrowserConfig): Backend => {
  const name = config.backend
  const guard = createUrlGuard(host, config.allowed_domains)
  const agent: Candidate = {
    name: 'agent_browser',
    load: async () => new (await import('./agent/agent-driver.ts')).AgentDriver(host, config, guard),
  }
  const native: Candidate = {
    name: 'native',
    load: async () => new (await import('./native/native-driver.ts')).NativeDriver(host, config, guard),
  }
  switch (name) {
    case 'agent_browser':
    case 'auto': {
      const candidates = name === 'auto' ? [native, agent] : [agent, native]
      return lazyBackend({ name, actions: BROWSER_ACTIONS, load: async () => new FirstUsable(candidates, host.log) })
    }
    case 'native':
      return lazyBackend({ ...native, actions: BROWSER_ACTIONS })
    case 'computer_use':
      return lazyBackend({
        name,
        actions: [...BROWSER_ACTIONS, ...DESKTOP_ACTIONS],
        load: async () => new (await import('./computer-use/computer-use-driver.ts')).ComputerUseDriver(host, config, guard),
      })
  }
}

const missingRequirement = ({ backend, native_chrome_path }: BrowserConfig): string | undefined =>
  backend === 'computer_use' || (backend !== 'native' && hasProgram('agent-browser')) ? undefined : lacksNative(native_chrome_path)

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
      ...(!config.enabled && { disabledReason: '`enabled` is false' }),
      tools: [browserTool(backend)],
      missingRequirement: () => missingRequirement(config),
      check: async (signal) => [...(config.allowed_domains.length === 0 ? [NOTHING_ALLOWED] : []), ...(await backend.check(signal))],
      close: () => backend.close(),
    }
  },
})
