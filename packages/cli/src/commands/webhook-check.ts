/** `sluice webhook check`: checks each configured webhook, and the way to it from outside. With a path: the triggers on it. Exits with 1 if a check fails. */
import { gatewaySection } from '@sluice/config'
import { openRuntime } from '@sluice/daemon/open-runtime'
import { withoutTrailing } from '@sluice/kit'
import { configuredChannels, type ReadyChannel } from '@sluice/runtime/configured-channels'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { checkPath } from '../webhooks/check-path.ts'
import { checkBroken, checkPublicUrl, checkSettings, isUsable } from '../webhooks/check-settings.ts'
import { type Finding, printFindings } from '../webhooks/finding.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const [path] = context.args
  if (path !== undefined) return (await import('../webhooks/check-request.ts')).checkRequest(context, path)
  const runtime = await openRuntime({ ...context, quiet: true, only: 'features' })
  try {
    const publicUrl = parsePublicUrl(context, runtime.config().core(gatewaySection).public_url)
    const { ready, broken, unconfigured } = configuredChannels(runtime.snapshot())
    const signal = context.interrupted()
    const ofChannels = (await Promise.all(ready.map((channel) => checkChannel(channel, publicUrl, signal)))).flat()
    const findings = [checkPublicUrl(publicUrl), ...ofChannels, ...broken.map(checkBroken)]
    if (json) out.json(findings)
    else {
      printFindings(out, findings)
      if (ofChannels.length === 0) out.print('no channel with a webhook is ready')
      if (unconfigured.length > 0) out.print(`not configured: ${unconfigured.map(({ name }) => name).join(', ')}`)
    }
    return findings.some(({ status }) => status === 'fail') ? 1 : 0
  } finally {
    await runtime.close(0)
  }
}

/** Checks the settings of a channel with a webhook and, if the public URL may be used, sends requests to it. */
async function checkChannel(ready: ReadyChannel, publicUrl: string | undefined, signal: AbortSignal): Promise<Finding[]> {
  const { webhook } = ready.channel
  if (!webhook) return []
  const settings = checkSettings(ready, webhook, publicUrl)
  if (publicUrl === undefined || !isUsable(publicUrl)) return settings
  return [...settings, ...(await checkPath(ready.channel, webhook, publicUrl, signal))]
}

/** Returns `--public-url` or the configured URL, without its query: the path of a webhook is appended to it. */
function parsePublicUrl({ options }: CliContext, configured: string | undefined): string | undefined {
  const option = options['public-url']
  const text = typeof option === 'string' ? option : configured
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new AppError('invalid_request', `the public URL must look like https://gateway.example.com, not '${text}'`)
  return withoutTrailing(`${url.origin}${url.pathname}`, '/')
}
