/** A browser for the agent: one tool, and three backends that drive a browser or a desktop. See `docs/browser.md`. */
import { hasProgram } from '@sluice/kit'
import { defineFeature, type Finding, type Host } from '@sluice/sdk'
import { BROWSER_ACTIONS, DESKTOP_ACTIONS } from './actions.ts'
import { type Backend, lazyBackend } from './backend.ts'
import { browserTool } from './browser-tool.ts'
import { type BrowserConfig, browserSection } from './config.ts'
import { type Candidate, FirstUsable } from './first-usable.ts'
import { missingForNative } from './native/find-chromium.ts'
import { createUrlGuard } from './url-guard.ts'

const NOTHING_ALLOWED: Finding = {
  status: 'warn',
  detail: 'allowed_domains is empty, so no page can be opened',
  fix: 'list the domains that the agent may visit in allowed_domains under [browser]',
}

export default defineFeature({
  id: 'tool-browser',
  section: browserSection,
  build(host, config) {
    const backend = createBackend(host, config)
    return {
      ...(!config.enabled && { disabledReason: '`enabled` is false' }),
      tools: [browserTool(backend)],
      missingRequirement: () => missingRequirement(host, config),
      check: async (signal) => [...(config.allowed_domains.length === 0 ? [NOTHING_ALLOWED] : []), ...(await backend.check(signal))],
      close: () => backend.close(),
    }
  },
})

function createBackend(host: Host, config: BrowserConfig): Backend {
  const guard = createUrlGuard(host, config.allowed_domains)
  const agent: Candidate = {
    name: 'agent_browser',
    load: async () => new (await import('./agent/agent-driver.ts')).AgentDriver(host, config, guard),
  }
  const native: Candidate = {
    name: 'native',
    load: async () => new (await import('./native/native-driver.ts')).NativeDriver(host, config, guard),
  }
  const name = config.backend
  switch (name) {
    case 'agent_browser':
      return lazyBackend(name, BROWSER_ACTIONS, async () => new FirstUsable([agent, native], host.log))
    case 'auto':
      return lazyBackend(name, BROWSER_ACTIONS, async () => new FirstUsable([native, agent], host.log))
    case 'native':
      return lazyBackend(name, BROWSER_ACTIONS, native.load)
    case 'computer_use':
      return lazyBackend(name, [...BROWSER_ACTIONS, ...DESKTOP_ACTIONS], async () => {
        const { ComputerUseDriver } = await import('./computer-use/computer-use-driver.ts')
        return new ComputerUseDriver(host, config, guard)
      })
  }
}

function missingRequirement(host: Host, { backend, native_chrome_path }: BrowserConfig): string | undefined {
  if (backend === 'computer_use' || (backend !== 'native' && hasProgram('agent-browser'))) return undefined
  return missingForNative(host.service('browserLibrary'), native_chrome_path)
}
