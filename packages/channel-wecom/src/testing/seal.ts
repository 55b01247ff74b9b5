/** Callbacks as WeCom sends them, made by its own library @wecom/crypto, and not with code of the channel. */
import { encrypt, getSignature } from '@wecom/crypto'

export const APP = {
  corp_id: 'wwcorp0000000001',
  agent_id: 1_000_002,
  app_secret: 'wecom-app-secret-01',
  callback_token: 'wecom-callback-token-01',
  callback_aes_key: 'jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C',
}

/** The elements of the message of an app's callback, in its order. */
export type Elements = Readonly<Record<string, string | number>>

const written = (value: string | number): string => (typeof value === 'number' ? String(value) : `<![CDATA[${value}]]>`)
export const xml = (elements: Elements): string =>
  `<xml>${Object.entries(elements)
    .map(([name, value]) => `<${name}>${written(value)}</${name}>`)
    .join('')}</xml>`

export const sealed = (
  message: string,
  { key = APP.callback_aes_key, receiver = APP.corp_id, random = Buffer.alloc(16, 'r') } = {},
): string => encrypt(key, message, receiver, random)

export const envelope = (encrypted: string): string =>
  `<xml><ToUserName><![CDATA[${APP.corp_id}]]></ToUserName><Encrypt><![CDATA[${encrypted}]]></Encrypt><AgentID><![CDATA[${APP.agent_id}]]></AgentID></xml>`

/** The query of a request with this body, or with this encrypted text. */
export function queryOf(
  body: string,
  atSecs: number,
  { token = APP.callback_token, nonce = '1372623149' } = {},
): Readonly<Record<string, string>> {
  const encrypted = /<Encrypt><!\[CDATA\[(.*?)\]\]><\/Encrypt>/.exec(body)?.[1] ?? body
  return { msg_signature: getSignature(token, String(atSecs), nonce, encrypted), timestamp: String(atSecs), nonce }
}
