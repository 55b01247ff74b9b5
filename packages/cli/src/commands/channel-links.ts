/** `sluice channels link` and `unlink`: makes a channel another device of an account, which a person confirms on a phone. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LinkAnswer } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'

const LOOK_MS = 500
/** Light modules around a QR code, which readers need. */
const MARGIN = 2

const pathOf = ({ args: [channel = ''] }: CliContext): string => `${apiPath('/api/channels', channel)}/link`

/** Shows each code until a phone has confirmed the device. With `--json`, prints each answer that differs from the one before. */
export const link = (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const path = pathOf(context)
      const phone = textOption(context, 'pair')
      await api.post<LinkAnswer>(path, phone === undefined ? {} : { phone })
      const stop = context.interrupted()
      try {
        return await follow(context, api, path, stop)
      } catch (error) {
        if (!stop.aborted) throw error
        await api.delete(path)
        throw new AppError('aborted', 'The attempt to link was ended')
      }
    },
    { features: true },
  )

async function follow({ out, json }: CliContext, api: Api, path: string, stop: AbortSignal): Promise<number> {
  for (let last = ''; ; await sleep(LOOK_MS, undefined, { signal: stop })) {
    const answer = await api.get<LinkAnswer>(path)
    const text = JSON.stringify(answer)
    if (text === last) continue
    last = text
    if (json) out.json(answer)
    if (answer.state === 'unlinked') throw new AppError('unavailable', answer.reason ?? 'The attempt to link has ended')
    if (answer.state === 'linked') {
      if (!json) out.print(`Linked to ${answer.account}.`)
      return 0
    }
    if (!json) show(out, answer)
  }
}

function show(out: CliContext['out'], { qr, code }: LinkAnswer): void {
  if (code !== null) out.print(`Type this code on the phone, under "Linked devices", "Link with phone number": ${code}`)
  if (qr === null) return
  out.print('Scan this code on the phone, under "Linked devices". It changes every 20 seconds.')
  for (const line of halfBlocks(qr.rows)) out.print(line)
}

/**
 * Draws a QR code with two rows in each line. Light modules are drawn, so that the code is dark on light in a terminal with light letters on
 * a dark ground, as readers expect.
 */
export function halfBlocks(rows: readonly string[]): string[] {
  const width = (rows[0]?.length ?? 0) + 2 * MARGIN
  const blank = Array.from({ length: MARGIN }, () => '0'.repeat(width))
  const all = [...blank, ...rows.map((row) => row.padStart(row.length + MARGIN, '0').padEnd(width, '0')), ...blank]
  const isLight = (row: string | undefined, column: number): boolean => (row?.[column] ?? '1') === '0'
  const lines: string[] = []
  for (let row = 0; row < all.length; row += 2) {
    const cells = Array.from({ length: width }, (_, column) => {
      const [top, bottom] = [isLight(all[row], column), isLight(all[row + 1], column)]
      if (top) return bottom ? '█' : '▀'
      return bottom ? '▄' : ' '
    })
    lines.push(cells.join(''))
  }
  return lines
}

export const unlink = (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const answer = await api.delete<LinkAnswer>(pathOf(context))
      if (context.json) context.out.json(answer)
      else context.out.print(`The channel ${answer.channel} is not linked any more.`)
      return 0
    },
    { features: true },
  )
