/** `/api/channels/:channel/link`: links a channel to an account as another device, which a person confirms on a phone. */
import type { Runtime } from '@sluice/runtime'
import { AppError, type ChannelLink, defineRoute, type LinkStatus, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { recordAction } from '../request/record-action.ts'

const PHONE_CHARS_MAX = 40

const linkSchema = v.object({
  channel: v.string(),
  state: v.picklist(['unlinked', 'linking', 'linked']),
  account: v.pipe(v.nullable(v.string()), v.description('The account that the device is linked to')),
  qr: v.pipe(
    v.nullable(
      v.object({
        text: v.pipe(v.string(), v.description('The content of the code')),
        rows: v.pipe(v.array(v.string()), v.description('Its rows, `1` for a dark module and `0` for a light one, without a margin')),
      }),
    ),
    v.description('The QR code that the phone scans; it changes about every 20 seconds'),
  ),
  code: v.pipe(v.nullable(v.string()), v.description('The code that is typed into the phone')),
  reason: v.pipe(v.nullable(v.string()), v.description('Why linking failed')),
})
/** The answer of the routes below `/api/channels/:channel/link`. */
export type LinkAnswer = v.InferOutput<typeof linkSchema>

const NOTHING = { account: null, qr: null, code: null, reason: null }

function shown(channel: string, status: LinkStatus): LinkAnswer {
  if (status.state === 'linked') return { ...NOTHING, channel, state: 'linked', account: status.account }
  if (status.state === 'unlinked') return { ...NOTHING, channel, state: 'unlinked', reason: status.reason ?? null }
  const { qr, code } = status
  return { ...NOTHING, channel, state: 'linking', qr: qr ? { text: qr.text, rows: [...qr.rows] } : null, code: code ?? null }
}

export function channelLinkRoutes(runtime: Runtime): Route[] {
  const linkOf = (name = ''): ChannelLink => {
    const { channels } = runtime.snapshot()
    const channel = channels.find((one) => one.name === name)
    if (!channel) throw new AppError('not_found', `There is no channel '${name}'`)
    if (channel.link) return channel.link
    const others = channels.flatMap((one) => (one.link ? [one.name] : []))
    const hint = others.length > 0 ? `; these are linked: ${others.join(', ')}` : ''
    throw new AppError('invalid_request', `The channel '${name}' has its credentials in the configuration and is not linked${hint}`)
  }
  const answers = { 200: { description: 'What to show', schema: linkSchema } }
  const path = '/api/channels/:channel/link'
  return [
    defineRoute({
      method: 'GET',
      path,
      summary: 'Whether the channel is linked to an account, and the code that is confirmed on the phone now',
      auth: 'operator',
      answers,
      handle: async ({ params: { channel = '' } }) => shown(channel, await linkOf(channel).status()),
    }),
    defineRoute({
      method: 'POST',
      path,
      summary: 'Begin to link the channel; ask for its code with GET every second or so',
      auth: 'operator',
      body: v.object({
        phone: v.optional(
          v.pipe(
            v.string(),
            v.maxLength(PHONE_CHARS_MAX),
            v.description('The number of the account, to link by a code that is typed into the phone instead of a QR code'),
          ),
        ),
      }),
      answers,
      async handle({ by, params: { channel = '' }, body: { phone } }) {
        const status = await linkOf(channel).start(phone === undefined ? {} : { phone })
        await recordAction(runtime, 'channel_linked', by, { channel })
        return shown(channel, status)
      },
    }),
    defineRoute({
      method: 'DELETE',
      path,
      summary: 'Remove the device from the account, or end an attempt to link',
      auth: 'operator',
      answers,
      async handle({ by, params: { channel = '' }, signal }) {
        const link = linkOf(channel)
        await link.unlink(signal)
        await recordAction(runtime, 'channel_unlinked', by, { channel })
        return shown(channel, await link.status())
      },
    }),
  ]
}
