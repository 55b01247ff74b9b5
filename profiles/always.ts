import bizchat from '@sluice/channel-bizchat'
import chatapp from '@sluice/channel-chatapp'
import dingtalk from '@sluice/channel-dingtalk'
import discord from '@sluice/channel-discord'
import email from '@sluice/channel-email'
import irc from '@sluice/channel-irc'
import line from '@sluice/channel-line'
import mailpush from '@sluice/channel-mailpush'
import mattermost from '@sluice/channel-mattermost'
import qq from '@sluice/channel-qq'
import roomchat from '@sluice/channel-roomchat'
import signal from '@sluice/channel-signal'
import slack from '@sluice/channel-slack'
import telegram from '@sluice/channel-telegram'
import textrelay from '@sluice/channel-textrelay'
import voiceCall from '@sluice/channel-voice-call'
import webhook from '@sluice/channel-webhook'
import wecom from '@sluice/channel-wecom'
import metrics from '@sluice/observability-metrics'
import anthropic from '@sluice/provider-anthropic'
import offline from '@sluice/provider-offline'
import openai from '@sluice/provider-openai'
import container from '@sluice/sandbox-container'
import jail from '@sluice/sandbox-jail'
import seatbelt from '@sluice/sandbox-seatbelt'
import speech from '@sluice/speech'
import browser from '@sluice/tool-browser'
import files from '@sluice/tool-files'
import http from '@sluice/tool-http'
import memory from '@sluice/tool-memory'
import shell from '@sluice/tool-shell'
import sop from '@sluice/tool-sop'
import transcription from '@sluice/transcription'
import mqtt from '@sluice/trigger-mqtt'

const providers = [offline, openai, anthropic]
const tools = [files, shell, http, memory, sop, browser]
const webhooks = [chatapp, textrelay, bizchat, roomchat, mailpush, line, webhook, voiceCall]
const sandboxes = [jail, seatbelt, container]
const chats = [telegram, discord, slack, irc, email, signal, dingtalk, mattermost, qq, wecom]

export const always = [...providers, ...tools, ...webhooks, ...chats, ...sandboxes, mqtt, transcription, speech, metrics]
