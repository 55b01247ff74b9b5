/** Asks for the id of the owner on each configured channel, so that an operator can decide calls in a chat. */
import { operatorsOf, readConfig } from '@sluice/config'
import { setConfig } from '@sluice/config/edit'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import type { Dialogue } from './dialogue.ts'

const CHANNELS = 'channels_config.'

/** Writes `operators` of each channel that has none and whose id the owner gives. */
export async function askOwner(context: CliContext, dialogue: Pick<Dialogue, 'ask'>): Promise<void> {
  const { out } = context
  for (const channel of await channelsWithoutOwner(context)) {
    const id = await dialogue.ask(`Your own id on ${channel}, to decide as an operator there (empty: skip)`)
    if (id === '') continue
    try {
      await setConfig(context, [{ path: `${CHANNELS}${channel}.operators`, value: JSON.stringify([id]) }])
      out.print(`Written: [${CHANNELS}${channel}] operators = ${JSON.stringify([id])}. The allowlist of the channel must name it too.`)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      out.warn(error.message)
    }
  }
}

async function channelsWithoutOwner(context: CliContext): Promise<readonly string[]> {
  const config = await readConfig(context)
  return context.features.flatMap(({ id, section }) => {
    if (!section?.path.startsWith(CHANNELS) || config.of(id).state !== 'configured') return []
    const channel = section.path.slice(CHANNELS.length)
    return config.hasCore(section.path) && operatorsOf(config, channel).length === 0 ? [channel] : []
  })
}
