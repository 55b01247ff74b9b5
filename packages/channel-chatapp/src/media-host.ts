/** Which addresses of media are the provider's own: no other is asked, and no other sees the token. */
import { sameOrigin } from '@sluice/sdk'

const HOSTS = ['graph.facebook.com']
const DOMAINS = ['.fbsbx.com', '.whatsapp.net']

/** `apiUrl` is the configured one, whose own origin is good as well. */
export function isMediaUrl(url: string, apiUrl: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, username, password, port, hostname } = new URL(url)
  if (username !== '' || password !== '') return false
  if (sameOrigin(url, apiUrl)) return true
  return protocol === 'https:' && port === '' && (HOSTS.includes(hostname) || DOMAINS.some((domain) => hostname.endsWith(domain)))
}
