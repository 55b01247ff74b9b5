import bizchat from '@sluice/channel-bizchat'
import chatapp from '@sluice/channel-chatapp'
import mailpush from '@sluice/channel-mailpush'
import roomchat from '@sluice/channel-roomchat'
import textrelay from '@sluice/channel-textrelay'
import metrics from '@sluice/observability-metrics'
import anthropic from '@sluice/provider-anthropic'
import offline from '@sluice/provider-offline'
import openai from '@sluice/provider-openai'
import files from '@sluice/tool-files'
import http from '@sluice/tool-http'
import memory from '@sluice/tool-memory'
import shell from '@sluice/tool-shell'
import transcription from '@sluice/transcription'

const providers = [offline, openai, anthropic]
const tools = [files, shell, http, memory]
const channels = [chatapp, textrelay, bizchat, roomchat, mailpush]

export const always = [...providers, ...tools, ...channels, transcription, metrics]
