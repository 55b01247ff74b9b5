/** Writes the property list of launchd. */
import { join } from 'node:path'
import { DRAIN_MS } from '@sluice/daemon/stop-times'
import { SERVICE_NAME, type ServicePlan } from './service-plan.ts'

/** The time that launchd waits beyond the drain before it kills the service. */
const STOP_MARGIN_SECS = 20
/** The shortest time between two starts. */
const THROTTLE_SECS = 10
const PRIVATE_UMASK = 0o077

/** A value of a property list. */
type Value = string | number | boolean | readonly string[] | { readonly [key: string]: Value }

/** Returns the text of the property list. launchd passes no socket to Node, so the port is closed during a restart. */
export function launchdPlist({ command, dataDir, scope }: ServicePlan, user: string): string {
  const log = join(dataDir, 'daemon.log')
  return document({
    Label: SERVICE_NAME,
    ProgramArguments: command,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: THROTTLE_SECS,
    ExitTimeOut: DRAIN_MS / 1000 + STOP_MARGIN_SECS,
    ProcessType: 'Background',
    Umask: PRIVATE_UMASK,
    StandardOutPath: log,
    StandardErrorPath: log,
    ...(scope === 'system' && { UserName: user }),
  })
}

const document = (value: Value): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
${element(value, '')}
</plist>
`

function element(value: Value, indent: string): string {
  if (typeof value === 'string') return `${indent}<string>${escaped(value)}</string>`
  if (typeof value === 'number') return `${indent}<integer>${value}</integer>`
  if (typeof value === 'boolean') return `${indent}<${value}/>`
  const inner = `${indent}  `
  if (isList(value)) return [`${indent}<array>`, ...value.map((each) => element(each, inner)), `${indent}</array>`].join('\n')
  const entries = Object.entries(value).flatMap(([key, each]) => [`${inner}<key>${escaped(key)}</key>`, element(each, inner)])
  return [`${indent}<dict>`, ...entries, `${indent}</dict>`].join('\n')
}

const isList = (value: Value): value is readonly string[] => Array.isArray(value)

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
