/** Tells whether a token, a file or the socket may go to an address: to Slack, to GovSlack, or to the host of a configured `api_url`. */

const SLACK = /^(?:[\w-]+\.)*(?:slack\.com|slack-edge\.com|slack-files\.com|slack-gov\.com)$/
const SECURE = ['https:', 'wss:']

/** A user name in a URL would replace the token. */
export function isSlackUrl(address: string, apiUrl: string): boolean {
  const url = URL.parse(address)
  const api = URL.parse(apiUrl)
  if (!url || !api || url.username !== '' || url.password !== '') return false
  const isSecure = SECURE.includes(url.protocol)
  if (url.host === api.host) return isSecure || (api.protocol === 'http:' && ['http:', 'ws:'].includes(url.protocol))
  return isSecure && SLACK.test(url.host)
}
