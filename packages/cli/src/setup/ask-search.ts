/** Asks for the search service of the agent, in a build whose agent can search the web. */
import { readConfig } from '@sluice/config'
import { setConfig } from '@sluice/config/edit'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import type { Dialogue } from './dialogue.ts'

const SECTION = ['tools', 'web'] as const

/** Writes the service that the owner names, with its key and its address. Asks nothing where one is set already. */
export async function askSearch(context: CliContext, dialogue: Pick<Dialogue, 'ask'>): Promise<void> {
  const { out, features } = context
  if (!features.some(({ id }) => id === 'tool-web')) return
  const config = await readConfig(context)
  if (config.source([...SECTION, 'search']).kind !== 'default') return
  const service = await dialogue.ask('Web search of the agent: brave, tavily or searxng (empty: none)')
  if (service === '') return
  const key = await dialogue.ask('Key of the search service, which is not shown (Enter for none)', { isHidden: true })
  const url = await dialogue.ask('Address of the search service (Enter for its own)')
  const values = { search: service, search_key: key, search_url: url }
  const given = Object.entries(values).filter(([, value]) => value !== '')
  try {
    await setConfig(
      context,
      given.map(([name, value]) => ({ path: [...SECTION, name].join('.'), value })),
    )
    out.hint(`Written: [${SECTION.join('.')}] search = "${service}". 'sluice doctor' says whether something is missing.`)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    out.warn(error.message)
  }
}
