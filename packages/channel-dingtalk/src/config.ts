/** The section `[channels_config.dingtalk]`. */
import { httpUrl, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  client_id: v.pipe(v.string(), v.trim(), v.minLength(1), v.description('The Client ID of the app, formerly called AppKey')),
  client_secret: v.pipe(secretText(), v.description('The Client Secret of the app, formerly called AppSecret')),
  robot_code: v.optional(
    v.pipe(v.string(), v.trim(), v.minLength(1), v.description('The RobotCode of the robot, where it differs from the Client ID')),
  ),
  allowed_users: v.optional(
    v.pipe(
      v.array(v.string()),
      v.description('The user ids (staff ids) of people who may write; * allows every sender, an empty list none'),
    ),
    [],
  ),
  mention_sender: v.optional(v.pipe(v.boolean(), v.description('True: a reply in a group mentions the person who asked')), true),
  api_url: v.optional(v.pipe(httpUrl(), v.description('Base URL of the API')), 'https://api.dingtalk.com'),
  oapi_url: v.optional(
    v.pipe(httpUrl(), v.description('Base URL of the older API, which takes replies and files')),
    'https://oapi.dingtalk.com',
  ),
})

export const dingtalkSection = { path: 'channels_config.dingtalk', schema } as const

export type DingtalkConfig = v.InferOutput<typeof schema>
