/** Replaces a webhook secret in plain text by its hash, where the configuration file is Sluice's own. */
import type { ConfigSource } from '@sluice/config'
import { isWithin } from '@sluice/kit'
import type { OpenRuntime } from './runtime/open-runtime.ts'

const KEY = 'gateway.webhook_secret'

/** Changes nothing when the file lies outside of the data directory: such a file may be managed by other programs. Never rejects. */
export async function hashWebhookSecret({ config, log }: Pick<OpenRuntime, 'config' | 'log'>, source: ConfigSource): Promise<void> {
  const { configFile, configValues, dataDir, shared } = source
  if (configValues || shared || !config().plainSecrets.includes(KEY) || !isWithin(configFile, dataDir)) return
  try {
    const { encryptInConfig } = await import('@sluice/config/edit')
    if ((await encryptInConfig(source, KEY)) !== 'encrypted') return
    log.info('The configuration file has the hash of the webhook secret now, in place of the secret.', {
      file: configFile,
      key: `${KEY}_sha256`,
    })
  } catch (error) {
    log.warn('The webhook secret stays in plain text in the configuration file.', { file: configFile, error })
  }
}
