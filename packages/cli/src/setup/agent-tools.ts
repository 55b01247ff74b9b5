/** Says at the end of setup what the agent can do with the written configuration: a line for each kind of tools, and the key that changes it. */
import { chooseProviders, readsPictures } from '@sluice/agent'
import { agentSection, configuredAgents, providerSection, readConfig, sandboxSection } from '@sluice/config'
import { catalogueProviders } from '@sluice/runtime/provider-problem'
import { AppError, type CatalogueId, howToGet, MAIN_AGENT } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

/** Whether a sandbox works is found by `sluice doctor`. */
export async function toolLines(context: CliContext): Promise<readonly string[]> {
  const config = await readConfig(context)
  const has = (id: CatalogueId) => context.features.some((feature) => feature.id === id)
  const line = (id: CatalogueId, tools: string, does: () => string) => `  ${tools.padEnd(TOOLS_CHARS)}${has(id) ? does() : howToGet(id)}`
  const web = has('tool-web') ? config.of('tool-web') : undefined
  const { search, fetch } = (web && 'value' in web ? web.value : {}) as { readonly search?: string; readonly fetch?: boolean }
  const { enabled, required } = config.core(sandboxSection)
  const where = enabled ? `in a sandbox${required ? '' : ' where one works'}` : 'without a sandbox'
  const policy = configuredAgents(config, context.dataDir).get(MAIN_AGENT)?.policy
  const isReadonly = policy?.level === 'readonly'
  const readonly = 'for more, set [security.policy] level = "supervised"'
  const { timezone } = config.core(agentSection)
  const seesPictures = readsPictures(chainOf(context, config))
  return [
    line('tool-files', 'files', () =>
      isReadonly ? `reads and searches files of its workspace; ${readonly}` : 'reads, edits and searches files of its workspace',
    ),
    line('tool-shell', 'commands', () => {
      if (isReadonly) return `runs commands that only read ${where}; ${readonly}`
      return policy?.shell === 'script'
        ? `runs scripts ${where}; [security.policy] shell = "plain" allows plain commands only`
        : `runs plain commands ${where}; for scripts, set [security.policy] shell = "script"`
    }),
    line('tool-web', 'web pages', () => (fetch === false ? 'reads none; for them, set [tools.web] fetch = true' : 'reads public pages')),
    line('tool-web', 'web search', () =>
      search === undefined ? 'none; set [tools.web] search to brave, tavily or searxng' : `searches with ${search}`,
    ),
    line('tool-memory', 'memories', () =>
      isReadonly ? `recalls facts, and remembers no new ones; ${readonly}` : 'remembers facts for each person',
    ),
    `  ${'pictures'.padEnd(TOOLS_CHARS)}${seesPictures ? 'sees them' : 'sees none; where the model can, set [provider] media = ["image"]'}`,
    `  ${'date'.padEnd(TOOLS_CHARS)}knows it in the time zone ${timezone ?? 'of this machine; for another one, set [agent] timezone'}`,
  ]
}

const TOOLS_CHARS = 12

/** Returns the models as the daemon will have them; none where it refuses the configuration. */
function chainOf({ features, env }: CliContext, config: Awaited<ReturnType<typeof readConfig>>) {
  try {
    return chooseProviders(config.core(providerSection), catalogueProviders(features), env)
  } catch (error) {
    if (error instanceof AppError) return []
    throw error
  }
}
