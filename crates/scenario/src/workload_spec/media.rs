//! What prompts hold: text alone, or text, images, audio and video.

use crate::problems::{Problems, Together, every};
use crate::workload_spec::client::{ClientSpec, Reader};
use crate::workload_spec::group::Group;
use crate::workload_spec::length::LengthSpec;
use crate::workload_spec::notes::{Note, Notes};
use blis_workload::{Input, Media};
use schemars::JsonSchema;
use serde::Deserialize;

/// `multimodal:` as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "the names are the file's")]
pub(super) struct MultimodalSpec {
    text_distribution: Group<LengthSpec>,
    image_distribution: Group<LengthSpec>,
    image_count_distribution: Group<LengthSpec>,
    audio_distribution: Group<LengthSpec>,
    audio_count_distribution: Group<LengthSpec>,
    video_distribution: Group<LengthSpec>,
    video_count_distribution: Group<LengthSpec>,
}

impl Reader<'_> {
    /// The new part of a prompt.
    pub(super) fn input(
        &self,
        spec: &ClientSpec,
        notes: &mut Notes<'_>,
    ) -> Result<Input, Problems> {
        const TEXT: &str = "input_distribution";
        let given = spec.input_distribution.given();
        let Some(parts) = spec.multimodal.given() else {
            let text = given.cloned().unwrap_or_default();
            return self.length(TEXT, &text).map(Input::from);
        };
        if given.is_some() {
            notes.add(Note::InputBesideMedia, &self.at(TEXT));
        }
        let beside = given.map(|text| self.length(TEXT, text)).transpose();
        let text = parts.text_distribution.given();
        let text = text.map(|text| self.length("multimodal.text_distribution", text)).transpose();
        let kinds = [
            ("image", &parts.image_distribution, &parts.image_count_distribution),
            ("audio", &parts.audio_distribution, &parts.audio_count_distribution),
            ("video", &parts.video_distribution, &parts.video_count_distribution),
        ];
        let media = every(
            kinds.map(|(kind, tokens, count)| self.media(kind, tokens.given(), count.given())),
        );
        let (_, text, media) = (beside, text, media).together()?;
        let media: Vec<Media> = media.into_iter().flatten().collect();
        if text.is_none() && media.is_empty() {
            let message = "neither text nor media; give at least one distribution";
            return Err(self.problem("multimodal", message));
        }
        Ok(Input { text, media })
    }

    /// Things of one kind: how many, and how many tokens each.
    fn media(
        &self,
        kind: &'static str,
        tokens: Option<&LengthSpec>,
        count: Option<&LengthSpec>,
    ) -> Result<Option<Media>, Problems> {
        let size = format!("multimodal.{kind}_distribution");
        let number = format!("multimodal.{kind}_count_distribution");
        self.whole(&[&size, &number])?;
        match (tokens, count) {
            (None, None) => Ok(None),
            (Some(tokens), Some(count)) => {
                let both = (self.count(&number, count), self.length(&size, tokens)).together();
                let (count, tokens) = both?;
                Ok(Some(Media { kind, count, tokens }))
            }
            (Some(_), None) => {
                let message = format!("it needs `{kind}_count_distribution`, their number");
                Err(self.problem(&size, message))
            }
            (None, Some(_)) => {
                let message = format!("it needs `{kind}_distribution`, the tokens of each");
                Err(self.problem(&number, message))
            }
        }
    }
}
