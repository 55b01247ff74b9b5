/** `sluice channels list`: the configured channels with their platforms and states. */
import { oneLine, rowOf } from '@sluice/sdk'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { TEXT_CHARS_MAX } from '../print-details.ts'

/** The members of `GET /api/channels` that the command prints. */
interface ListedChannel {
  readonly channel: string
  readonly feature: string
  readonly state: string
  readonly detail: string | null
  readonly last_event_at: string | null
  readonly last_sent_at: string | null
  readonly missing: string | null
}

export async function list(context: CliContext): Promise<number> {
  const { out, json } = context
  return withApi(
    context,
    async (api) => {
      const { channels } = await api.get<{ readonly channels: readonly ListedChannel[] }>('/api/channels')
      if (json) out.json(channels)
      else if (channels.length === 0)
        out.hint("no channel is configured; 'sluice features' lists the channels of this build, and docs/channels says how to set one up")
      else
        out.table(
          ['channel', 'platform', 'state', 'last message', 'last reply', 'note'],
          channels.map((row) => [
            row.channel,
            rowOf(row.feature)?.summary ?? '',
            // Without a daemon, nothing is connected, and no state is known.
            api.answerer === 'in process' ? 'not running' : row.state,
            row.last_event_at ?? '-',
            row.last_sent_at ?? '-',
            oneLine(row.missing === null ? (row.detail ?? '') : `missing: ${row.missing}`, TEXT_CHARS_MAX),
          ]),
        )
      return 0
    },
    { features: true },
  )
}
