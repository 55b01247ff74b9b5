/** `sluice webhook check`: each configured webhook, and the way to it from outside. Exit 1 if anything fails. */
import { gatewaySection } from '@sluice/config'
import { withoutTrailing } from '@sluice/kit'
import { configuredChannels } from '@sluice/runtime/configured-channels'
import { AppError } from '@sluice/sdk'
import type { CliContext, Output, Style } from '../context.ts'
import { openFromContext } from '../open.ts'
import { checkPath } from '../webhooks/check-path.ts'
import { checkBroken, checkPublicUrl, checkSettings, isUsable } from '../webhooks/check-settings.ts'
import type { Finding } from '../webhooks/finding.ts'

const STYLES: Record<Finding['status'], Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const runtime = await openFromContext(context)
  try {
    const publicUrl = publicUrlOf(context, runtime.config().core(gatewaySection).public_url)
    const { ready, broken, unconfigured } = configuredChannels(runtime.snapshot())
    const signal = context.interrupted()
    const perChannel = await Promise.all(
      ready.map(async (one): Promise<Finding[]> => {
        const { webhook } = one.channel
        if (!webhook) return []
        const settings = checkSettings(one, webhook, publicUrl)
        const isTried = publicUrl !== undefined && isUsable(publicUrl)
        return isTried ? [...settings, ...(await checkPath(one.channel, webhook, publicUrl, signal))] : settings
      }),
    )
    const findings = [checkPublicUrl(publicUrl), ...perChannel.flat(), ...broken.map(checkBroken)]
    if (json) out.json(findings)
    else {
      print(out, findings)
      if (perChannel.flat().length === 0) out.print('no channel with a webhook is ready')
      if (unconfigured.length > 0) out.print(`not configured: ${unconfigured.map(({ name }) => name).join(', ')}`)
    }
    return findings.some(({ status }) => status === 'fail') ? 1 : 0
  } finally {
    await runtime.close(0)
  }
}

/** Without a query, which no path can be put behind. */
function publicUrlOf({ options }: CliContext, configured: string | undefined): string | undefined {
  const given = options['public-url']
  const text = typeof given === 'string' ? given : configured
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new AppError('invalid_request', `the public URL must look like https://gateway.example.com, not '${text}'`)
  return withoutTrailing(`${url.origin}${url.pathname}`, '/')
}

function print(out: Output, findings: readonly Finding[]): void {
  const channelWidth = Math.max(...findings.map(({ channel }) => channel?.length ?? 0))
  const checkWidth = Math.max(...findings.map(({ check }) => check.length))
  for (const { channel, check, status, detail, fix, took_ms } of findings) {
    const took = took_ms === null ? '' : ` (${took_ms} ms)`
    out.print(
      `${out.style(STYLES[status], status.padEnd(4))}  ${(channel ?? '').padEnd(channelWidth)}  ${check.padEnd(checkWidth)}  ${detail}${took}`,
    )
    if (fix) out.print(`${' '.repeat(channelWidth + checkWidth + 10)}${fix}`)
  }
}
