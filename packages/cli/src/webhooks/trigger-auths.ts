/** Finds how triggers on a path verify their requests, in the files of the procedures, and the secrets of the configuration. */
import { gatewaySection, readConfig, sopSection } from '@sluice/config'
import { sopSettings } from '@sluice/runtime/sop-settings'
import { AppError, authKey, SENDER_SCHEMES, type SenderName, type WebhookAuth } from '@sluice/sdk'
import { loadSops } from '@sluice/sop/load-sops'
import type { CliContext } from '../context.ts'

export interface TriggerAuths {
  /** The distinct authentications of the triggers on the path; a trigger without `auth` has none. */
  readonly auths: readonly WebhookAuth[]
  /** True: a trigger on the path takes the credentials of `POST /webhook`. */
  readonly takesBearer: boolean
  /** The values of `[sop.secrets]` by name, trimmed as the daemon uses them. */
  readonly secrets: ReadonlyMap<string, string>
  /** `[gateway] public_url`, which the daemon verifies where the sender signs the address. */
  readonly publicUrl: string | undefined
}

/** Procedures that the agent can write are left out. */
export async function readTriggerAuths(context: CliContext, path: string): Promise<TriggerAuths> {
  const config = await readConfig(context)
  const { definitions } = await loadSops({ ...sopSettings(config, context.dataDir), agreed: new Map(), nowMs: Date.now() })
  const triggers = definitions
    .flatMap((definition) => definition.triggers)
    .filter((trigger) => trigger.type === 'webhook')
    .filter((trigger) => trigger.path === path)
  const auths = new Map(triggers.flatMap(({ auth }) => (auth ? [[authKey(auth), auth]] : [])))
  const { secrets = {} } = config.core(sopSection)
  return {
    auths: [...auths.values()],
    takesBearer: triggers.some(({ auth }) => !auth),
    secrets: new Map(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal().trim()])),
    publicUrl: config.core(gatewaySection).public_url,
  }
}

export interface AuthChoice {
  /** The value of `--as`. */
  readonly as?: string | undefined
  /** The name of a secret. */
  readonly secret?: string | undefined
}

/**
 * Returns the authentication that `--as` names, or the only one of the path. If several remain, the secret decides. Throws
 * `invalid_request` for any other name.
 */
export function chooseAuth(all: readonly WebhookAuth[], { as, secret }: AuthChoice, path: string): WebhookAuth {
  const withSecret = all.filter(({ secrets }) => secret !== undefined && secrets.includes(secret))
  const auths = withSecret.length > 0 ? withSecret : all
  const [first, second] = as === undefined ? auths : auths.filter(({ name }) => name === as)
  if (first && (as !== undefined || !second)) return first
  if (as !== undefined && Object.hasOwn(SENDER_SCHEMES, as)) {
    return { name: as, scheme: SENDER_SCHEMES[as as SenderName], secrets: [as], windowSecs: 300 }
  }
  const known = second ? auths.map(({ name, secrets }) => `${name} with --secret ${secrets[0]}`) : Object.keys(SENDER_SCHEMES)
  const problem =
    as === undefined
      ? `--as is missing, and ${second ? 'several triggers name' : 'no trigger with auth names'} ${path}`
      : `there is no sender '${as}'`
  throw new AppError('invalid_request', `${problem}; it is one of ${known.join(', ')}`)
}
